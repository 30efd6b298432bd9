/**
 * The function that claims in claim order, whatever the groups. It keeps its plan and brings its own settings: planning a claim for every
 * call took three times as long as claiming one task, and behind PgBouncer or in a pool of the caller's neither settings nor prepared
 * statements are ours.
 *
 * It finds the levels, and from the highest priority down leases the first due tasks of all levels of one priority. It
 * reads about as many rows as it leases and a few more per level, whatever else is waiting.
 */
import { inLevel, LEASED, lease, levels, NOW, overdueFrom, SETTINGS, withoutTask } from './5-levels.ts'

const KNOWN = 'unnest(known_types, known_lines, known_priorities, known_begins) k(type, line, priority, begins)'

/** The due levels of each priority, highest first. */
const duePriorities = (schema: string): string => `
        ${levels(schema)}
        select d.priority, array_agg(d.type) as types, array_agg(d.line) as lines, array_agg(d.begins) as begins, count(*)::integer as levels
        from (
          select l.type, l.line, l.priority, l.begins from live l where known_types is null and l.begins <= instant
          union all
          select k.type, k.line, k.priority, k.begins from ${KNOWN} where k.begins <= instant
        ) d group by d.priority order by d.priority desc`

/**
 * Rows that a transaction under way has locked are passed by their xmax: trying to lock them costs ten times as much, and
 * with many processes most rows at the front are of that kind.
 */
const IS_READY = `t.available_at <= instant and (t.expires_at is null or t.expires_at > instant) and age(t.xmax) > oldest_writer`

/** The usual case: one level has something due. It is locked while it is walked. */
const placesOfOne = (schema: string): string => `
            select t.ctid from ${schema}.task t
            where ${inLevel('here.types[1]', 'here.lines[1]')} and t.priority = here.priority and t.available_at >= here.begins[1] and ${IS_READY}
            order by t.available_at, t.id limit missing for update skip locked`

/**
 * The first due tasks of several levels. From each a share is read. What comes after the last task of a level that gave
 * its whole share may not be next in order, so it is left to another round.
 */
const mergeLevels = (schema: string): string => `
          with candidate as materialized (
            select l.n, x.place, x.id, x.available_at, x.rank = l.share as is_last
            from unnest(here.types, here.lines, here.begins, shares) with ordinality l(type, line, begins, share, n)
            cross join lateral (
              select t.ctid as place, t.id, t.available_at, row_number() over (order by t.available_at, t.id) as rank from ${schema}.task t
              where ${inLevel('l.type', 'l.line')} and t.priority = here.priority and (t.available_at, t.id) > (greatest(l.begins - 1, after_at), after_id) and ${IS_READY}
              order by t.available_at, t.id limit l.share
            ) x
          ),
          certain as materialized (select c.available_at, c.id from candidate c where c.is_last order by c.available_at, c.id limit 1)
          select array_agg(c.place), array_agg(c.n), (select e.available_at from certain e), (select e.id from certain e)
          from candidate c where not exists (select 1 from certain e where (c.available_at, c.id) > (e.available_at, e.id))`

/**
 * Finds rows by their place, and has no other way to find them: \`status || ''\` fits no index. Words that fit an index made the
 * planner read the whole backlog when statistics were missing or old. Places are joined one by one: with a list of places in
 * one scan, PostgreSQL sorts the list again for each row that another process has written meanwhile. The conditions hold for
 * such rows.
 */
const placesOfMany = (schema: string): string => `
            select t.ctid from unnest(places) m(place) join ${schema}.task t on t.ctid = m.place
            where t.status || '' = 'pending' and t.queue = of_queue and t.type = any(here.types) and t.priority = here.priority
              and t.available_at <= instant and (t.expires_at is null or t.expires_at > instant)
            order by t.available_at, t.id limit missing for update of t skip locked`

/** The first instant at which something of this queue is due, or anything lapses or expires. */
const nextInstant = (schema: string): string => `
        ${levels(schema)}
        select least(
          (select min(case when l.begins > instant then l.begins else (
            select t.available_at from ${schema}.task t where ${inLevel('l.type', 'l.line')} and t.priority = l.priority and t.available_at >= l.begins
              and (t.expires_at is null or t.expires_at > instant) order by t.available_at limit 1
          ) end) from live l),${overdueFrom(schema)}
        )`

/** For claims that resume. */
const levelsAsText = (schema: string): string => {
  const inOrder = (column: string): string => `json_agg(l.${column} order by l.priority desc)`
  return `${levels(schema)}
        select json_build_object('types', ${inOrder('type')}, 'lines', ${inOrder('line')}, 'priorities', ${inOrder('priority')}, 'begins', ${inOrder('begins')})::text from live l having count(*) > 0`
}

/**
 * With \`known_…\` the claim resumes: it takes these levels as they are and looks for no others. After the leased tasks comes a row without a
 * token: when nothing was leased, with the next instant in the place of available_at; when everything was, with the levels in the place
 * of the options. Every expression of the procedure costs some microseconds in each call, so there are few on the way of the usual case.
 */
export const claimInOrder = (schema: string): string => `
  create function ${schema}.claim_in_order(at bigint, of_queue text, types text[], amount integer, op text, worker text, ttl bigint, entry text,
    known_types text[], known_lines integer[], known_priorities integer[], known_begins bigint[])
  returns table (${LEASED}) language plpgsql ${SETTINGS} as $holdfast$
  #variable_conflict use_variable
  declare
    instant constant bigint := coalesce(at, ${NOW});
    oldest_writer integer := age(pg_snapshot_xmin(pg_current_snapshot())::xid);
    missing integer := amount;
    taken integer;
    here record;
    shares integer[];
    after_at bigint;
    after_id uuid;
    places tid[];
    numbers bigint[];
  begin
    entry := ',"at":' || instant || entry || '.';
    while amount > 0 loop
      for here in ${duePriorities(schema)} loop
        if here.levels = 1 then
          return query ${lease(schema, placesOfOne(schema))};
          get diagnostics taken = row_count;
          missing := missing - taken;
        else
          shares := array_fill(missing * 5 / 4 / here.levels + 3, array[here.levels]);
          after_at := -9223372036854775808;
          after_id := 'ffffffff-ffff-ffff-ffff-ffffffffffff';
          loop
            ${mergeLevels(schema)} into places, numbers, after_at, after_id;
            exit when places is null;
            return query ${lease(schema, placesOfMany(schema))};
            get diagnostics taken = row_count;
            missing := missing - taken;
            exit when missing = 0 or after_at is null;
            -- The next round reads more of the levels that gave most, and little of those whose turn had not come.
            select array_agg(2 + 4 * coalesce(g.given, 0) order by s.n) into shares
            from generate_subscripts(shares, 1) s(n) left join (select u.n, count(*) as given from unnest(numbers) u(n) group by u.n) g on g.n = s.n;
          end loop;
        end if;
        exit when missing = 0;
      end loop;
      -- While an old transaction is open, an xmax that means nothing looks like that of one under way. Where nothing else is left, they are tried.
      exit when not found or missing < amount or oldest_writer < 0;
      oldest_writer := -1;
    end loop;
    if missing = amount then
      return query ${withoutTask({ availableAt: 'x.next' })} from (${nextInstant(schema)}) x(next);
    elsif missing = 0 and known_types is null then
      return query ${withoutTask({ options: 'x.levels' })} from (${levelsAsText(schema)}) x(levels);
    end if;
  end $holdfast$;`
