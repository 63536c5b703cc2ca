"""The page at /docs: it shows the OpenAPI document of this server, and loads nothing from elsewhere.

Style and script stand in the page, and its policy lets the browser run these two and no others, by their hashes. The
script puts text into elements, and never markup.
"""

from __future__ import annotations

import base64
import hashlib

__all__ = ["PAGE", "PAGE_POLICY"]

_STYLE = """
:root { color-scheme: light dark; --line: #8884; --dim: #888; --accent: #0b7285; }
body { font: 15px/1.5 system-ui, sans-serif; max-width: 62rem; margin: 2rem auto; padding: 0 1rem; }
h1 { margin-bottom: 0; } h2 { margin-top: 2.2rem; border-bottom: 1px solid var(--line); }
code, .path { font-family: ui-monospace, monospace; font-size: 0.93em; }
p.about { white-space: pre-wrap; }
details { border: 1px solid var(--line); border-radius: 6px; margin: 0.5rem 0; padding: 0.4rem 0.8rem; }
summary { cursor: pointer; }
summary .method { display: inline-block; width: 4.5rem; font-weight: 700; color: var(--accent); }
summary .what { color: var(--dim); margin-left: 0.8rem; }
table { border-collapse: collapse; margin: 0.4rem 0 0.8rem; width: 100%; }
td, th { text-align: left; vertical-align: top; padding: 0.2rem 0.7rem 0.2rem 0; border-bottom: 1px solid var(--line); }
pre { overflow: auto; background: #8881; padding: 0.6rem; border-radius: 6px; font-size: 0.85em; max-height: 28rem; }
"""

_SCRIPT = """
"use strict";
const add = (parent, tag, text, kind) => {
  const made = document.createElement(tag);
  if (text !== undefined) made.textContent = text;
  if (kind) made.className = kind;
  parent.append(made);
  return made;
};
const row = (table, cells, tag) => {
  const line = add(table, "tr");
  cells.forEach((cell, place) => {
    const made = add(line, tag || "td");
    if (place === 0 && !tag) add(made, "code", cell); else made.textContent = cell;
  });
};
const resolve = (document_, value) => {
  if (!value || !value.$ref) return value;
  return value.$ref.slice(2).split("/").reduce((found, part) => found[part], document_);
};
const shape = (document_, schema, depth) => {
  schema = resolve(document_, schema);
  if (!schema || depth > 4) return "…";
  const many = schema.anyOf || schema.oneOf;
  if (many) return many.map((one) => shape(document_, one, depth + 1)).join("\\n— or —\\n");
  if (schema.type === "object" || schema.properties) {
    const lines = Object.entries(schema.properties || {}).map(([name, one]) => {
      const needed = (schema.required || []).includes(name) ? "" : "?";
      return "  ".repeat(depth + 1) + name + needed + ": " + shape(document_, one, depth + 1);
    });
    if (schema.additionalProperties) {
      lines.push("  ".repeat(depth + 1) + "<name>: " + shape(document_, schema.additionalProperties, depth + 1));
    }
    return "{\\n" + lines.join("\\n") + "\\n" + "  ".repeat(depth) + "}";
  }
  if (schema.type === "array") return "[" + shape(document_, schema.items, depth + 1) + "]";
  if (schema.enum) return schema.enum.map((one) => JSON.stringify(one)).join(" | ");
  return [].concat(schema.type || "any").join(" | ") + (schema.format ? " (" + schema.format + ")" : "");
};
const operation = (parent, document_, path, method, given, shared) => {
  const block = add(parent, "details");
  const head = add(block, "summary");
  add(head, "span", method.toUpperCase(), "method");
  add(head, "span", path, "path");
  add(head, "span", given.summary, "what");
  if (given.description) add(block, "p", given.description);
  const parameters = [...(shared || []), ...(given.parameters || [])].map((one) => resolve(document_, one));
  if (parameters.length) {
    add(block, "h4", "Parameters");
    const table = add(block, "table");
    row(table, ["name", "in", "type", "what"], "th");
    for (const one of parameters)
      row(table, [one.name, one.in, shape(document_, one.schema, 0), one.description || ""]);
  }
  for (const [media, body] of Object.entries((given.requestBody || {}).content || {})) {
    add(block, "h4", "Body: " + media);
    add(block, "pre", shape(document_, body.schema, 0));
  }
  add(block, "h4", "Answers");
  const answers = add(block, "table");
  row(answers, ["status", "what", "form"], "th");
  for (const [status, one] of Object.entries(given.responses)) {
    const found = resolve(document_, one);
    row(answers, [status, found.description, Object.keys(found.content || {}).join(", ")]);
  }
};
fetch("openapi.json").then((answer) => answer.json()).then((document_) => {
  const main = document.querySelector("main");
  add(main, "h1", document_.info.title);
  add(main, "p", "version " + document_.info.version);
  add(main, "p", document_.info.description, "about");
  for (const tag of document_.tags) {
    add(main, "h2", tag.name);
    add(main, "p", tag.description);
    for (const [path, methods] of Object.entries(document_.paths)) {
      for (const [method, given] of Object.entries(methods)) {
        if ((given.tags || []).includes(tag.name)) operation(main, document_, path, method, given, methods.parameters);
      }
    }
  }
}).catch((error) => { document.querySelector("main").textContent = "The document cannot be read: " + error; });
"""


def _hashed(text: str) -> str:
    return "'sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode() + "'"


PAGE = (
    '<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>Headwater online tables</title>'
    '<meta name="viewport" content="width=device-width, initial-scale=1">'
    f"<style>{_STYLE}</style></head><body><main></main><script>{_SCRIPT}</script></body></html>\n"
).encode()

PAGE_POLICY = (
    f"default-src 'none'; style-src {_hashed(_STYLE)}; script-src {_hashed(_SCRIPT)}; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
).encode()
