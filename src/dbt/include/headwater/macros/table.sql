{# Tables: replaced by the rows of a query in one commit, or extended by them. #}

{% materialization table, adapter='headwater' -%}
  {%- set existing = load_cached_relation(this) -%}
  {%- set target = this.incorporate(type='table') -%}

  {{ run_hooks(pre_hooks, inside_transaction=False) }}
  {{ run_hooks(pre_hooks, inside_transaction=True) }}

  {% if existing is not none and not existing.is_table %}
    {% do adapter.drop_relation(existing) %}
  {% endif %}
  {% call statement('main') -%}
    {{ get_create_table_as_sql(False, target, sql) }}
  {%- endcall %}
  {% do apply_grants(target, config.get('grants')) %}
  {% do persist_docs(target, model) %}

  {{ run_hooks(post_hooks, inside_transaction=True) }}
  {{ run_hooks(post_hooks, inside_transaction=False) }}
  {{ return({'relations': [target]}) }}
{%- endmaterialization %}

{% materialization incremental, adapter='headwater' -%}
  {%- set existing = load_cached_relation(this) -%}
  {%- set target = this.incorporate(type='table') -%}
  {%- set key = config.get('unique_key') -%}
  {%- set keys = [key] if key is string else (key or []) -%}
  {%- set strategy = config.get('incremental_strategy') or ('merge' if keys else 'append') -%}

  {% if strategy not in ['append', 'merge'] %}
    {{ exceptions.raise_compiler_error("the strategy '" ~ strategy ~ "' is not known here: use 'append', or 'merge' with a unique_key; a materialized_view needs neither") }}
  {% elif strategy == 'merge' and not keys %}
    {{ exceptions.raise_compiler_error("the strategy 'merge' needs a unique_key") }}
  {% elif (config.get('on_schema_change') or 'ignore') != 'ignore' %}
    {{ exceptions.raise_compiler_error("on_schema_change can only be 'ignore' here: run with --full-refresh after columns have changed") }}
  {% elif config.get('incremental_predicates') or config.get('merge_update_columns') or config.get('merge_exclude_columns') %}
    {{ exceptions.raise_compiler_error("incremental_predicates, merge_update_columns and merge_exclude_columns are not known here: a merge updates whole rows") }}
  {% endif %}

  {{ run_hooks(pre_hooks, inside_transaction=False) }}
  {{ run_hooks(pre_hooks, inside_transaction=True) }}

  {% if existing is not none and not existing.is_table %}
    {% do adapter.drop_relation(existing) %}
    {% set existing = none %}
  {% endif %}
  {% call statement('main') -%}
    {% if existing is none or should_full_refresh() %}
      {{ get_create_table_as_sql(False, target, sql) }}
    {% else %}
      {{ headwater__extend(target, keys if strategy == 'merge' else [], headwater__under_contract(sql)) }}
    {% endif %}
  {%- endcall %}
  {% do apply_grants(target, config.get('grants')) %}
  {% do persist_docs(target, model) %}

  {{ run_hooks(post_hooks, inside_transaction=True) }}
  {{ run_hooks(post_hooks, inside_transaction=False) }}
  {{ return({'relations': [target]}) }}
{%- endmaterialization %}

{% macro headwater__extend(target, keys, query) -%}
  {%- set columns = adapter.get_columns_in_relation(target) | map(attribute='quoted') | list -%}
  {%- if keys -%}
    merge into {{ target.render() }} as old
    using (select {{ columns | join(', ') }} from ({{ query }}) as fresh) as new
    on {% for one in keys %}old.{{ adapter.quote(one) }} = new.{{ adapter.quote(one) }}{{ ' and ' if not loop.last }}{% endfor %}
    when matched then update set *
    when not matched then insert *
  {%- else -%}
    insert into {{ target.render() }} ({{ columns | join(', ') }}) select {{ columns | join(', ') }} from ({{ query }}) as fresh
  {%- endif -%}
{%- endmacro %}

{% materialization snapshot, adapter='headwater' -%}
  {{ exceptions.raise_compiler_error("snapshots are not known here: a lake keeps the versions of its tables, which SELECT … VERSION AS OF reads") }}
{%- endmaterialization %}
