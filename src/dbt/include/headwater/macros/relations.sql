{# Creating and dropping. A lake renames nothing, and replaces in one commit. It has no temporary tables either: those of unit
   tests are tables until dbt drops them. #}

{% macro headwater__create_table_as(temporary, relation, compiled_code) -%}
  {{ config.get('sql_header') or '' }}
  create or replace table {{ relation.render() }}{{ headwater__comment(relation) }}
  as {{ headwater__under_contract(compiled_code) }}
{%- endmacro %}

{# A query without the semicolon at its end, which is more than a statement may hold; with the columns of a contract. #}
{% macro headwater__under_contract(query) -%}
  {%- set query = query.strip().rstrip(';') -%}
  {%- if config.get('contract') and config.get('contract').enforced -%}
    {{ get_assert_columns_equivalent(query) }}
    {%- set query = get_select_subquery(query) -%}
  {%- endif -%}
  {{ query }}
{%- endmacro %}

{% macro headwater__comment(relation) -%}
  {%- if config.persist_relation_docs() and model.description %} comment '{{ model.description | replace("\\", "\\\\") | replace("'", "\\'") }}'{% endif -%}
{%- endmacro %}

{% macro headwater__drop_table(relation) -%}
  drop table if exists {{ relation.render() }}
{%- endmacro %}

{% macro headwater__drop_view(relation) -%}
  drop materialized view if exists {{ relation.render() }}
{%- endmacro %}

{% macro headwater__drop_materialized_view(relation) -%}
  drop materialized view if exists {{ relation.render() }}
{%- endmacro %}

{% macro headwater__rename_relation(from_relation, to_relation) -%}
  {{ exceptions.raise_compiler_error("a lake renames nothing: " ~ from_relation ~ " cannot become " ~ to_relation) }}
{%- endmacro %}

{% macro headwater__get_create_view_as_sql(relation, sql) -%}
  {{ get_create_materialized_view_as_sql(relation, sql) }}
{%- endmacro %}

{# The comment of a relation is written with it; those of columns here. #}
{% macro headwater__persist_docs(relation, model, for_relation=true, for_columns=true) -%}
  {% if for_columns and config.persist_column_docs() and model.columns %}
    {% if relation.is_table %}
      {% set there = adapter.get_columns_in_relation(relation) | map(attribute="name") | list %}
      {% set documented = validate_doc_columns(relation, model.columns, there) %}
      {% for name in documented %}
        {% do run_query("alter table " ~ relation.render() ~ " alter column " ~ adapter.quote(name) ~ " comment '" ~ (documented[name].description | replace("\\", "\\\\") | replace("'", "\\'")) ~ "'") %}
      {% endfor %}
    {% else %}
      {{ exceptions.warn("descriptions of columns are kept for tables, and " ~ relation ~ " is a materialized view") }}
    {% endif %}
  {% endif %}
{%- endmacro %}

{% macro headwater__apply_grants(relation, grant_config, should_revoke=True) -%}
  {% if grant_config %}
    {{ exceptions.raise_compiler_error("a lake has no grants: the storage decides who may read it; leave `grants` out of " ~ relation) }}
  {% endif %}
{%- endmacro %}

{% macro headwater__current_timestamp() -%}
  current_timestamp()
{%- endmacro %}
