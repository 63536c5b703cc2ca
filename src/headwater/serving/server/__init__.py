"""server: online tables over HTTP, by several processes that share one copy of the rows.

From the bottom to the top:

- `options` is what a server is told, `access` who may do what, `reply` what goes back, `refusal` which status an error
  has.
- `media` and `target` read what a request sends, accepts and asks for; `request_keys`, `rows_body` and `json_values`
  its body; `answer_body` writes JSON and Parquet.
- `served` holds the tables of one process and follows their newest versions in a thread; `backing` and `configured` say
  which tables these are.
- `fetching` answers a fetch: a pure function of the request and the tables. There are two ways to it: `protocol`, below
  ASGI, for what is asked most (with `head_memory`), and `app` with its routes for the whole API (`call`,
  `fetch_routes`, `table_routes`, `server_routes`), which `openapi` describes and `page` shows.
- `metrics` counts in memory that all processes share (`shared_counters`).
- `flight` answers Arrow Flight beside HTTP.
- `service` is what one process has; `worker` is a process that answers, `follower` the one that publishes, and
  `supervisor` starts and minds them, after `warming` has loaded the kernels.
"""
