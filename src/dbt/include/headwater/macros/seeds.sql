{# Seeds: a table that is made once; every load replaces all of its rows in one commit, so that views follow what differs. #}

{% macro headwater__create_csv_table(model, agate_table) -%}
  {%- set given = model['config'].get('column_types', {}) -%}
  {%- set sql -%}
    create or replace table {{ this.render() }} (
      {%- for name in agate_table.column_names -%}
        {{ adapter.quote(name) }} {{ given.get(name, adapter.convert_type(agate_table, loop.index0)) }}{{ ', ' if not loop.last }}
      {%- endfor -%}
    )
  {%- endset -%}
  {% call statement('_') -%}{{ sql }}{%- endcall %}
  {{ return(sql) }}
{%- endmacro %}

{% macro headwater__reset_csv_table(model, full_refresh, old_relation, agate_table) -%}
  {% if full_refresh %}
    {{ return(create_csv_table(model, agate_table)) }}
  {% endif %}
  {% if not agate_table.rows %}
    {% do adapter.load_seed(this, agate_table) %}
  {% endif %}
  {{ return('') }}
{%- endmacro %}

{% macro headwater__load_csv_rows(model, agate_table) -%}
  {% do adapter.load_seed(this, agate_table) %}
  {{ return('-- ' ~ (agate_table.rows | length) ~ ' rows of a file') }}
{%- endmacro %}
