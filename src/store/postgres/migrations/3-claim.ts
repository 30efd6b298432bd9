/**
 * The function that claims. It keeps its plan and brings its own settings: planning a claim for every call took three times as long
 * as claiming one task, and behind PgBouncer or in a pool of the caller's neither settings nor prepared statements are ours.
 *
 * A *level* is a type with one of its priorities; tasks that may expire are separate levels. The function finds the
 * levels, and from the highest priority down leases the first due tasks of all levels of one priority. It
 * reads about as many rows as it leases and a few more per level, whatever else is waiting.
 */

/** In the words of the index task_ready. */
const inLevel = (type: string, expiring: string): string =>
  `t.status = 'pending' and t.queue = claim.queue and t.type = ${type} and (t.expires_at is not null) = ${expiring}`

/** Types are found by jumping along the index. */
const waitingTypes = (schema: string): string => `
      with recursive waiting(type) as (
        (select t.type from ${schema}.task t where t.status = 'pending' and t.queue = claim.queue order by t.type limit 1)
        union all
        select (select t.type from ${schema}.task t where t.status = 'pending' and t.queue = claim.queue and t.type > w.type order by t.type limit 1) from waiting w where w.type is not null
      ) select array_agg(w.type) from waiting w where w.type is not null`

/**
 * The levels with the instant at which each begins, found by jumping along the index: neither other types nor future tasks are
 * walked. A level of which everything has expired is left out; that is asked in the words of the index task_live, which fit no
 * other index, and in a form that cannot become a hash of all tasks with an expiry.
 */
const levels = (schema: string): string => {
  const first = (where: string): string =>
    `lateral (select t.priority, t.available_at from ${schema}.task t where ${where} order by t.priority desc, t.available_at limit 1) x`
  return `
        with recursive level(type, expiring, priority, begins) as (
          select w.type, e.expiring, x.priority, x.available_at
          from unnest(types) w(type), (values (false), (true)) e(expiring), ${first(inLevel('w.type', 'e.expiring'))}
          union all
          select l.type, l.expiring, x.priority, x.available_at from level l, ${first(`${inLevel('l.type', 'l.expiring')} and t.priority < l.priority`)}
        ),
        live as (
          select l.* from level l where not l.expiring or (
            select true from ${schema}.task t
            where t.status || '' = 'pending' and t.queue = claim.queue and t.type = l.type and t.priority = l.priority and t.expires_at > instant limit 1
          )
        )`
}

const KNOWN = 'unnest(known_types, known_expiring, known_priorities, known_begins) k(type, expiring, priority, begins)'

/** The due levels of each priority, highest first. */
const duePriorities = (schema: string): string => `
        ${levels(schema)}
        select d.priority, array_agg(d.type) as types, array_agg(d.expiring) as expiring, array_agg(d.begins) as begins, count(*)::integer as levels
        from (
          select l.type, l.expiring, l.priority, l.begins from live l where known_types is null and l.begins <= instant
          union all
          select k.type, k.expiring, k.priority, k.begins from ${KNOWN} where k.begins <= instant
        ) d group by d.priority order by d.priority desc`

/**
 * Rows that a transaction under way has locked are passed by their xmax: trying to lock them costs ten times as much, and
 * with many processes most rows at the front are of that kind.
 */
const IS_READY = `t.available_at <= instant and (t.expires_at is null or t.expires_at > instant) and age(t.xmax) > oldest_writer`

/** The usual case: one level has something due. It is locked while it is walked. */
const placesOfOne = (schema: string): string => `
            select t.ctid from ${schema}.task t
            where ${inLevel('here.types[1]', 'here.expiring[1]')} and t.priority = here.priority and t.available_at >= here.begins[1] and ${IS_READY}
            order by t.available_at, t.id limit missing for update skip locked`

/**
 * The first due tasks of several levels. From each a share is read. What comes after the last task of a level that gave
 * its whole share may not be next in order, so it is left to another round.
 */
const mergeLevels = (schema: string): string => `
          with candidate as materialized (
            select l.n, x.place, x.id, x.available_at, x.rank = l.share as is_last
            from unnest(here.types, here.expiring, here.begins, shares) with ordinality l(type, expiring, begins, share, n)
            cross join lateral (
              select t.ctid as place, t.id, t.available_at, row_number() over (order by t.available_at, t.id) as rank from ${schema}.task t
              where ${inLevel('l.type', 'l.expiring')} and t.priority = here.priority and (t.available_at, t.id) > (greatest(l.begins - 1, after_at), after_id) and ${IS_READY}
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
            where t.status || '' = 'pending' and t.queue = claim.queue and t.type = any(here.types) and t.priority = here.priority
              and t.available_at <= instant and (t.expires_at is null or t.expires_at > instant)
            order by t.available_at, t.id limit missing for update of t skip locked`

/** A row's place makes the token unique in the claim. */
const lease = (schema: string, places: string, also: string): string => `
          update ${schema}.task t set
            status = 'running', revision = t.revision + 1, attempts = t.attempts + 1, updated_at = instant, started_at = instant,
            lease_token = op || '.' || t.ctid::text, lease_worker = worker, lease_claimed_at = instant, lease_expires_at = instant + ttl,${also}
            history = t.history || (',{"n":' || (t.revision + 1) || entry || t.ctid::text || '"}')
          where t.ctid = any(array(${places}
          ))
          returning t.lease_token, t.priority, t.available_at, t.expires_at, t.created_at, t.revision, t.attempts, t.retry_count, t.reschedule_count, t.replay_count,
            t.id, t.input, t.type, t.idempotency_key, t.last_error, t.options, t.replayed_as, instant`

/** The first instant at which something of this queue is due, or anything lapses or expires. */
const nextInstant = (schema: string): string => `
        ${levels(schema)}
        select least(
          (select min(case when l.begins > instant then l.begins else (
            select t.available_at from ${schema}.task t where ${inLevel('l.type', 'l.expiring')} and t.priority = l.priority and t.available_at >= l.begins
              and (t.expires_at is null or t.expires_at > instant) order by t.available_at limit 1
          ) end) from live l),
          (select t.lease_expires_at from ${schema}.task t where t.status = 'running' order by t.lease_expires_at limit 1),
          (select t.expires_at from ${schema}.task t where t.status = 'pending' and t.expires_at is not null order by t.expires_at limit 1)
        )`

/** For claims that resume. */
const levelsAsText = (schema: string): string => {
  const inOrder = (column: string): string => `json_agg(l.${column} order by l.priority desc)`
  return `${levels(schema)}
        select json_build_object('types', ${inOrder('type')}, 'expiring', ${inOrder('expiring')}, 'priorities', ${inOrder('priority')}, 'begins', ${inOrder('begins')})::text from live l having count(*) > 0`
}

/** As many columns as a leased task, all null but two. */
const withoutTask = ({ availableAt, options }: { readonly availableAt: string; readonly options: string }): string => `
        select null::text, null::integer, ${availableAt}, null::bigint, null::bigint, null::integer, null::integer, null::integer, null::integer, null::integer,
          null::uuid, null::text, null::text, null::text, null::text, ${options}, null::uuid, instant`

const LEASED = `lease_token text, priority integer, available_at bigint, expires_at bigint, created_at bigint, revision integer,
    attempts integer, retry_count integer, reschedule_count integer, replay_count integer, id uuid, input text, type text, idempotency_key text,
    last_error text, options text, replayed_as uuid, now bigint`

/** One plan for all values: the statements are written so that there is only one good one, and they must not be planned by the table's past. */
const SETTINGS = `set plan_cache_mode = force_generic_plan set enable_bitmapscan = off set enable_hashjoin = off set enable_mergejoin = off
    set enable_seqscan = off set jit = off set search_path = pg_catalog`

/**
 * \`also\` is for later migrations: what a claim assigns besides. With \`known_…\` the claim resumes: it takes these levels as they are and looks for no others.
 * After the leased tasks comes a row without a token: when nothing was leased, with the next instant in the place of available_at; when
 * everything was, with the levels in the place of the options. Every expression of the procedure costs some microseconds in each call,
 * so there are few on the way of the usual case.
 */
export const claimFunction = (schema: string, { create = 'create function', also = '' } = {}): string => `
  ${create} ${schema}.claim(at bigint, queue text, types text[], amount integer, op text, worker text, ttl bigint, entry text,
    known_types text[], known_expiring boolean[], known_priorities integer[], known_begins bigint[])
  returns table (${LEASED}) language plpgsql ${SETTINGS} as $holdfast$
  #variable_conflict use_variable
  declare
    instant constant bigint := coalesce(at, floor(extract(epoch from clock_timestamp()) * 1000)::bigint);
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
    if types is null then
      ${waitingTypes(schema)} into types;
    end if;
    while amount > 0 loop
      for here in ${duePriorities(schema)} loop
        if here.levels = 1 then
          return query ${lease(schema, placesOfOne(schema), also)};
          get diagnostics taken = row_count;
          missing := missing - taken;
        else
          shares := array_fill(missing * 5 / 4 / here.levels + 3, array[here.levels]);
          after_at := -9223372036854775808;
          after_id := 'ffffffff-ffff-ffff-ffff-ffffffffffff';
          loop
            ${mergeLevels(schema)} into places, numbers, after_at, after_id;
            exit when places is null;
            return query ${lease(schema, placesOfMany(schema), also)};
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
      return query ${withoutTask({ availableAt: 'x.next', options: 'null::text' })} from (${nextInstant(schema)}) x(next);
    elsif missing = 0 and known_types is null then
      return query ${withoutTask({ availableAt: 'null::bigint', options: 'x.levels' })} from (${levelsAsText(schema)}) x(levels);
    end if;
  end $holdfast$;`

/**
 * Drops the functions of earlier versions. task_live has a different condition: with that of task_expiry, the planner used that index when
 * statistics were old, and walked it.
 */
export const claim = (schema: string): string => `
  drop index ${schema}.task_live;
  create index task_live on ${schema}.task (queue, type, priority, expires_at) where status || '' = 'pending' and expires_at is not null;
  drop function if exists ${schema}.claim_of_one_type(bigint, text, text[], integer, text, text, bigint, text);
  drop function if exists ${schema}.claim_of_types(bigint, text, text[], integer, text, text, bigint, text);
  drop function if exists ${schema}.next_look(bigint, text, text[]);
  ${claimFunction(schema)}
  `
