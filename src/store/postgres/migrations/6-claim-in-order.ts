/**
 * Claims as before, but for rows that name a transaction in xmax. One that began after the oldest transaction still open counted as under way, although it may
 * have ended: by a rollback, or having locked the row only. While a transaction is open for long, such tasks waited until nothing else was left. The snapshot
 * knows which have ended. To ask it costs a quarter of a microsecond a row, and a busy server has many such rows, so only transactions that others have
 * overtaken many times make it worthwhile.
 */
import { claimInOrder as before } from './5-claim-in-order.ts'

/** In transactions begun since. */
const OLD = 32

/** The xmax of a row has 32 bits: the rest is that of the oldest transaction, which began before it. */
const HAS_ENDED = `pg_visible_in_snapshot((oldest_open + oldest_writer - age(t.xmax))::text::xid8, seen)`

export const claimInOrder = (schema: string): string =>
  before(schema)
    .replace('create function', 'create or replace function')
    .replaceAll(
      'age(t.xmax) > oldest_writer',
      `(age(t.xmax) > oldest_writer or (oldest_writer > ${OLD} and ${HAS_ENDED}))`,
    )
    .replace(
      'oldest_writer integer := age(pg_snapshot_xmin(pg_current_snapshot())::xid);',
      `seen constant pg_snapshot := pg_current_snapshot();
    oldest_open constant bigint := pg_snapshot_xmin(seen)::text::bigint;
    oldest_writer integer := age(pg_snapshot_xmin(seen)::xid);`,
    )
