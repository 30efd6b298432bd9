/** The function that finds the groups with a ready task, by hopping from one to the next. */
import { levels, NOW, SETTINGS, WAITS_IN_GROUP } from './5-levels.ts'

const MOST_EXPIRED = 200
const MOST_HOPS = 5_000

const nextGroup = (schema: string, after: string): string => `
          select x.g from unnest(level_types, level_priorities) w(type, priority) cross join lateral (
            select t.task_group as g from ${schema}.task t where ${WAITS_IN_GROUP} and t.type = w.type and t.priority = w.priority and t.task_group > ${after}
            order by t.task_group limit 1
          ) x order by x.g limit 1`

const isReady = (schema: string): string => `
          select true from unnest(level_types, level_priorities) w(type, priority) cross join lateral (
            select 1 from (
              select t.expires_at from ${schema}.task t
              where ${WAITS_IN_GROUP} and t.type = w.type and t.priority = w.priority and t.task_group = y.g and t.available_at <= instant
              order by t.available_at, t.id limit ${MOST_EXPIRED}
            ) e where e.expires_at is null or e.expires_at > instant limit 1
          ) x limit 1`

/** Beginning behind \`after\`, once around. */
export const waitingGroups = (schema: string): string => `
  create function ${schema}.waiting_groups(at bigint, of_queue text, types text[], after text, amount integer)
  returns table (task_group text) language plpgsql ${SETTINGS} as $holdfast$
  #variable_conflict use_variable
  declare
    instant constant bigint := coalesce(at, ${NOW});
    level_types text[];
    level_priorities integer[];
  begin
    ${levels(schema)}
    select array_agg(d.type), array_agg(d.priority) into level_types, level_priorities
    from (select distinct l.type, l.priority from live l where l.line >= 2 and l.begins <= instant) d;
    return query
      with recursive hop(g, lap, n, found, is_ready) as (
        select coalesce(after, '') collate "C", after is not null, 0, 0, false
        union all
        select y.g, y.lap, h.n + 1, h.found + case when r.is_ready then 1 else 0 end, coalesce(r.is_ready, false)
        from hop h
        cross join lateral (
          (select true as lap, q.g from (${nextGroup(schema, 'h.g')}) q where h.lap)
          union all
          (select false, q.g from (${nextGroup(schema, `case when h.lap then '' else h.g end`)}) q where after is null or q.g <= after)
          limit 1
        ) y
        cross join lateral (select (${isReady(schema)}) as is_ready) r
        where h.found < amount and h.n < amount + ${MOST_HOPS}
      )
      select h.g::text from hop h where h.is_ready order by h.n;
  end $holdfast$;`
