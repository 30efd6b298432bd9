/** The function that claims in claim order, and no more than the queue has places. */
import { begun } from './5-begun.ts'
import { inLevel, LEASED, levels, NOW, overdueFrom, SETTINGS, withoutTask } from './5-levels.ts'

/** What is ready now is held back, so the next instant is one to come. */
export const laterInstant = (schema: string): string => `least(
          (select min((
            select t.available_at from ${schema}.task t where ${inLevel('l.type', 'l.line')} and t.priority = l.priority and t.available_at > instant order by t.available_at limit 1
          )) from live l),${overdueFrom(schema)}
        )`

const isAnyReady = (schema: string): string => `(
          select true from live l cross join lateral (
            select 1 from ${schema}.task t
            where ${inLevel('l.type', 'l.line')} and t.priority = l.priority and t.available_at >= l.begins and t.available_at <= instant
              and (t.expires_at is null or t.expires_at > instant) limit 1
          ) x where l.begins <= instant limit 1
        )`

/** The last row without a token has what the claim found beside the tasks, in the place of last_error, unless it leased all that was wanted. */
export const claimCapped = (schema: string): string => `
  create function ${schema}.claim_capped(at bigint, of_queue text, types text[], amount integer, op text, worker text, ttl bigint, entry text,
    known_types text[], known_lines integer[], known_priorities integer[], known_begins bigint[], concurrency integer, not_after bigint, patience text)
  returns table (${LEASED}) language plpgsql ${SETTINGS} as $holdfast$
  #variable_conflict use_variable
  declare
    instant bigint := coalesce(at, ${NOW});
    places integer := amount;
    given integer := 0;
  begin
    ${begun(schema, 'concurrency is not null')}
    if concurrency is not null then
      places := least(amount, places);
    end if;
    if places > 0 then
      return query select * from ${schema}.claim_in_order(instant, of_queue, types, places, op, worker, ttl, entry, known_types, known_lines, known_priorities, known_begins) c
        where c.lease_token is not null or (c.options is not null and places = amount);
      get diagnostics given = row_count;
    end if;
    if given < amount or amount = 0 then
      return query ${levels(schema)} ${withoutTask({
        availableAt: laterInstant(schema),
        lastError: `json_build_object('isHeldBack', given = places and places < amount and coalesce(${isAnyReady(schema)}, false))::text`,
      })};
    end if;
  end $holdfast$;`
