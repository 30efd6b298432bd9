/** How a claim under limits begins. */
import { NOW, withoutTask } from './5-levels.ts'

/**
 * The count is taken by a statement after the lock, so it has seen what every earlier claim leased. In a transaction with one snapshot for all its
 * statements it would not: such a call does nothing, and says so. \`places\` becomes what the concurrency of the queue leaves. A claim has one
 * lock and waits for nothing else while it holds it, so two claims never wait for each other.
 */
export const begun = (schema: string, needsLock: string): string => `
    if current_setting('transaction_isolation') not in ('read committed', 'read uncommitted') then
      return query ${withoutTask({ lastError: `'{"isIsolated":true}'::text` })};
      return;
    end if;
    if ${needsLock} then
      perform set_config('lock_timeout', patience, true);
      perform pg_advisory_xact_lock(hashtextextended('holdfast ${schema} ' || of_queue, 0));
      instant := coalesce(at, ${NOW});
    end if;
    if instant > not_after then
      return query ${withoutTask({ availableAt: 'instant', lastError: `'{"isHeldBack":false}'::text` })};
      return;
    end if;
    if concurrency is not null then
      select greatest(0, concurrency - count(*)::integer) into places from (select 1 from ${schema}.task t where t.status = 'running' and t.queue = of_queue limit concurrency) x;
    end if;`
