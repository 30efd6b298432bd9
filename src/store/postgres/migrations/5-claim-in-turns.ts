/**
 * The function that claims in turns of groups. Per priority it hops from group to group behind the cursor, each hop one descent of the index,
 * until it has seen as many groups with a place as it wants tasks. Where there are fewer, it takes more of each, round by round. What waits
 * in a group is not walked, and the number of hops is bounded.
 */
import { begun } from './5-begun.ts'
import { laterInstant } from './5-claim-capped.ts'
import { inLevel, LEASED, lease, levels, NOW, SETTINGS, WAITS_IN_GROUP, withoutTask } from './5-levels.ts'

/** Expired tasks that are read to find one that lives: what is overdue is reported, and soon gone. */
const MOST_EXPIRED = 200
const MOST_HOPS = 1_000
/** In the order of the visits, those behind the cursor come before. */
const LAP = 1_000_000

/** The ready tasks of one group, as far as \`most\`. */
const readyOf = (schema: string, group: string, most: string): string => `
                select x.place, x.available_at, x.id from (select unnest(here.grouped) as type) w cross join lateral (
                  select e.place, e.available_at, e.id from (
                    select t.ctid as place, t.available_at, t.id, t.expires_at from ${schema}.task t
                    where ${WAITS_IN_GROUP} and t.type = w.type and t.priority = here.priority and t.task_group = ${group} and t.available_at <= instant
                    order by t.available_at, t.id limit ${most} + ${MOST_EXPIRED}
                  ) e where e.expires_at is null or e.expires_at > instant order by e.available_at, e.id limit ${most}
                ) x order by x.available_at, x.id limit ${most}`

/** The same of those without a group. */
const readyOfNone = (schema: string, most: string): string => `
                select x.place, x.available_at, x.id from unnest(here.types, here.lines, here.begins) u(type, line, begins) cross join lateral (
                  select t.ctid as place, t.available_at, t.id from ${schema}.task t
                  where ${inLevel('u.type', 'u.line')} and t.priority = here.priority and t.available_at >= u.begins and t.available_at <= instant
                    and (t.expires_at is null or t.expires_at > instant)
                  order by t.available_at, t.id limit ${most}
                ) x order by x.available_at, x.id limit ${most}`

/**
 * The first group behind this one. Of one type, the usual case, with its first task, which spares another descent; of several, a sort finds
 * the group.
 */
const nextGroup = (schema: string, after: string): string => `
              (select t.task_group as g, t.ctid as place, t.available_at <= instant and (t.expires_at is null or t.expires_at > instant) as is_ready from ${schema}.task t
              where ${WAITS_IN_GROUP} and t.type = single_type and t.priority = here.priority and t.task_group > ${after}
              order by t.task_group, t.available_at, t.id limit 1)
              union all
              (select x.g, null::tid, false from (select unnest(here.grouped) as type) w cross join lateral (
                select t.task_group as g from ${schema}.task t
                where ${WAITS_IN_GROUP} and t.type = w.type and t.priority = here.priority and t.task_group > ${after}
                order by t.task_group limit 1
              ) x where single_type is null order by x.g limit 1)`

const runningOf = (schema: string, group: string): string => `
              select count(*)::integer as running from (
                select 1 from ${schema}.task t where t.status || '' = 'running' and t.task_group is not null and t.queue = of_queue and t.task_group = ${group} limit per_group
              ) r where per_group is not null`

const takenOf = (group: string): string =>
  `case when is_first then 0 else (select count(*)::integer from unnest(chosen_groups) k(g) where k.g = ${group}) end`

/** \`allow\`: how many more may be leased of a group that has something ready. \`fills\`: with these its places are taken. */
const about = (schema: string, group: string, first: string): string => `
            select f.place, a.allow, per_group is not null and c.running + s.taken + a.allow >= per_group and not ${group} = any(without) as fills
            from (${first}) f
            cross join lateral (${runningOf(schema, group)}) c
            cross join lateral (select ${takenOf(group)} as taken offset 0) s
            cross join lateral (
              select case when ${group} = any(without) then 0 else greatest(0, least(
                most_each, per_group - c.running, case when only_groups is not null then coalesce((select b.n from unnest(only_groups, only_counts) b(g, n) where b.g = ${group}), 0) end
              ) - s.taken) end as allow
            ) a`

const UNGROUPED = (schema: string): string => `
            select '' collate "C" as g, ${LAP} as at, f.place, most_each - ${takenOf("''")} as allow, false as fills from (${readyOfNone(schema, '1')}) f where with_ungrouped`

const VISITED = `array_agg(v.g order by v.at) filter (where v.allow > 0), array_agg(v.allow order by v.at) filter (where v.allow > 0),
            array_agg(v.place order by v.at) filter (where v.allow > 0), array_agg(v.fills order by v.at) filter (where v.allow > 0)`

/** The first ready task of the group that was hopped to. */
const firstOf = (schema: string): string => `
              (select y.place where y.is_ready)
              union all
              (select r.place from (${readyOf(schema, 'y.g', '1')}) r where not y.is_ready)`

/** The end of the range of full groups in which this one is. */
const lastPassed = (group: string): string =>
  `case when has_passed then (select max(k.last collate "C") from unnest(passed_first, passed_last) k(first, last) where ${group} >= k.first and ${group} <= k.last) end`

/** Beginning behind \`start\`, once around to \`after\`. A range of groups that are known to be full is one hop. */
const hop = (schema: string): string => `
        with recursive hop(g, lap, n, found, place, allow, fills) as (
          select coalesce(start, '') collate "C", wraps, 0, 0, null::tid, 0, false
          union all
          select y.g, y.lap, h.n + 1, h.found + case when e.allow > 0 then 1 else 0 end, e.place, coalesce(e.allow, 0), coalesce(e.fills, false)
          from hop h
          cross join lateral (
            select p.lap, coalesce(p.last, p.g) as g, p.last is null as is_open, p.place, p.is_ready from (select o.*, ${lastPassed('o.g')} as last from (
              (select true as lap, q.* from (${nextGroup(schema, 'h.g')}) q where h.lap)
              union all
              (select false, q.* from (${nextGroup(schema, `case when h.lap then '' else h.g end`)}) q where after is null or q.g <= after)
              limit 1
            ) o offset 0) p
          ) y
          left join lateral (${about(schema, 'y.g', firstOf(schema))}) e on y.is_open
          where h.found < goal and h.n < hops
        ),
        visit as (
          select h.g, h.n + case when h.lap then 0 else ${LAP} end as at, h.place, h.allow, h.fills from hop h
          union all ${UNGROUPED(schema)}
        )
        select ${VISITED}, array_agg(v.g) filter (where v.allow = 0 and v.fills),
          (select max(h.n) from hop h), (select h.g from hop h where h.n = hops and h.found < goal)
        from visit v`

/** Without hops: these groups, and those without one. */
const visitOnly = (schema: string): string => `
        select ${VISITED} from (
          select o.g, case when after is null or o.g <= after collate "C" then ${LAP} else 0 end + row_number() over (order by o.g collate "C") as at, e.place, e.allow, e.fills
          from unnest(only_groups) o(g) cross join lateral (${about(schema, 'o.g', readyOf(schema, 'o.g', '1'))}) e
          union all ${UNGROUPED(schema)}
        ) v`

/** One of each group, then another of each: no more than \`share\` of one are read. One more than allowed tells that a group is full. */
const takeRounds = (schema: string): string => `
            with line as materialized (
              select m.g, m.at, m.allow, m.fills, k.place, k.rank
              from unnest(groups, allows, fills) with ordinality m(g, allow, fills, at)
              cross join lateral (
                select z.place, row_number() over (order by z.available_at, z.id) as rank from (
                  (select * from (${readyOf(schema, 'm.g', 'least(m.allow + 1, share)')}) x where m.g <> '')
                  union all
                  (select * from (${readyOfNone(schema, 'least(m.allow + 1, share)')}) x where m.g = '')
                ) z
              ) k
            ),
            pick as materialized (select l.place, l.g from line l where l.rank <= l.allow order by l.rank, l.at limit missing)
            select (select array_agg(p.place) from pick p), (select array_agg(p.g) from pick p),
              (select count(*)::integer from pick) < missing and exists (select 1 from line l where l.rank = share and share <= l.allow),
              case when (select count(*)::integer from pick) < missing then array(select l.g from line l where l.fills and l.rank = l.allow + 1) end`

/** By their places, as in claim_in_order. The conditions hold for rows that another process has written meanwhile. */
const chosenPlaces = (schema: string): string => `
            select t.ctid from unnest(chosen[1:places], chosen_groups[1:places]) m(place, g) join ${schema}.task t on t.ctid = m.place
            where t.status || '' = 'pending' and t.queue = of_queue and (types is null or t.type = any(types)) and coalesce(t.task_group, '') = m.g
              and t.available_at <= instant and (t.expires_at is null or t.expires_at > instant)
            for update of t skip locked`

/** Of one task, by its id. */
const findOne = (schema: string): string => `
      select array[t.ctid], array[coalesce(t.task_group, '')] into firsts, groups from ${schema}.task t
      where t.id = only_id and t.status || '' = 'pending' and t.queue = of_queue and (types is null or t.type = any(types)) and t.available_at <= instant
        and (t.expires_at is null or t.expires_at > instant);
      if groups[1] <> '' then
        ${runningOf(schema, 'groups[1]')} into taken;
        if groups[1] = any(without) or taken >= per_group or most_each < 1
          or (only_groups is not null and coalesce((select b.n from unnest(only_groups, only_counts) b(g, n) where b.g = groups[1]), 0) < 1) then
          firsts := null;
        end if;
        if taken >= per_group and not groups[1] = any(without) then
          full_groups := groups;
        end if;
      end if;
      if firsts is not null then
        chosen := firsts;
        chosen_groups := groups;
      end if;`

/**
 * \`wanted\` is one more than there are places: then a task is held back. The last row, without a token, has the next instant in the place of
 * available_at and what the claim found beside the tasks in that of last_error. \`from_priority\` and \`from_group\` are where a claim ended that
 * had too many hops before it.
 */
export const claimInTurns = (schema: string): string => `
  create function ${schema}.claim_in_turns(at bigint, of_queue text, types text[], amount integer, op text, worker text, ttl bigint, entry text,
    concurrency integer, not_after bigint, patience text, only_id uuid, per_group integer, after text, most_each integer, without text[],
    only_groups text[], only_counts integer[], passed_first text[], passed_last text[], from_priority integer, from_group text)
  returns table (${LEASED}) language plpgsql ${SETTINGS} as $holdfast$
  #variable_conflict use_variable
  declare
    instant bigint := coalesce(at, ${NOW});
    places integer := amount;
    wanted integer;
    missing integer;
    taken integer;
    here record;
    start text;
    single_type text;
    wraps boolean;
    is_first boolean;
    has_passed constant boolean := cardinality(passed_first) > 0;
    with_ungrouped boolean;
    goal integer;
    hops integer := 2 * amount + ${MOST_HOPS};
    used integer;
    share integer;
    is_more boolean;
    chosen tid[] := '{}';
    chosen_groups text[] := '{}';
    groups text[];
    allows integer[];
    firsts tid[];
    fills boolean[];
    full_groups text[] := '{}';
    more_full text[];
    cut_priority integer;
    cut_group text;
  begin
    ${begun(schema, 'true')}
    entry := ',"at":' || instant || entry || '.';
    wanted := least(amount, places + 1);
    if only_id is not null then
      ${findOne(schema)}
    elsif wanted > 0 then
      for here in ${levels(schema)}
        select l.priority, array_agg(l.type) filter (where l.line < 2) as types, array_agg(l.line) filter (where l.line < 2) as lines,
          array_agg(l.begins) filter (where l.line < 2) as begins, array_agg(distinct l.type) filter (where l.line >= 2) as grouped
        from live l where l.begins <= instant and (from_priority is null or l.priority <= from_priority) group by l.priority order by l.priority desc
      loop
        missing := wanted - cardinality(chosen);
        is_first := missing = wanted;
        single_type := case when cardinality(here.grouped) = 1 then here.grouped[1] end;
        start := case when here.priority = from_priority then from_group else after end;
        wraps := after is not null and start >= after collate "C";
        with_ungrouped := here.types is not null and (after is null and start is null or wraps);
        goal := case when only_groups is null then missing else 2147483647 end;
        if only_groups is null or per_group is not null then
          ${hop(schema)} into groups, allows, firsts, fills, more_full, used, cut_group;
          full_groups := full_groups || more_full;
          hops := hops - used;
        end if;
        if only_groups is not null then
          ${visitOnly(schema)} into groups, allows, firsts, fills;
        end if;
        if cardinality(groups) >= missing then
          chosen := chosen || firsts[1:missing];
          chosen_groups := chosen_groups || groups[1:missing];
        elsif groups is not null then
          share := missing / cardinality(groups) + 2;
          loop
            ${takeRounds(schema)} into firsts, groups, is_more, more_full;
            exit when not is_more;
            share := 2 * share;
          end loop;
          chosen := chosen || firsts;
          chosen_groups := chosen_groups || groups;
          full_groups := full_groups || more_full;
        end if;
        if cut_group is not null then
          cut_priority := here.priority;
        end if;
        exit when cut_group is not null or cardinality(chosen) >= wanted;
      end loop;
    end if;
    places := least(places, cardinality(chosen));
    taken := 0;
    if places > 0 then
      return query ${lease(schema, chosenPlaces(schema))};
      get diagnostics taken = row_count;
    end if;
    more_full := array(select distinct f.g collate "C" as g from unnest(full_groups) f(g) order by g);
    if taken = amount then
      return query ${withoutTask({ lastError: `json_build_object('full', more_full)::text` })};
    else
      return query ${levels(schema)} ${withoutTask({
        availableAt: laterInstant(schema),
        lastError: `json_build_object('isHeldBack', cardinality(full_groups) > 0 or cardinality(chosen) > places, 'full', more_full,
          'isContested', taken < places, 'cut', case when cut_group is not null then json_build_object('priority', cut_priority, 'group', cut_group) end)::text`,
      })};
    end if;
  end $holdfast$;`
