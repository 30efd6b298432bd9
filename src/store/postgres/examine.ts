/** Collects facts for `doctor`: settings, privileges, open transactions, dead rows. Decides nothing. */
import type { Fact } from '../../core/observe/diagnosis.ts'
import type { Executor } from './connection.ts'
import { SCHEMA_VERSION, schemaVersion } from './schema.ts'

const LEAST_VERSION = 15

const SETTINGS = `
  select current_setting('server_version'), current_setting('server_version_num')::integer, current_setting('fsync'), current_setting('full_page_writes'),
    current_setting('synchronous_commit'), current_setting('autovacuum'), current_setting('max_connections')::integer, current_user, pg_is_in_recovery()`

const MISSING_RIGHTS = `
  select r.right || ' on ' || t.name from unnest(array['task', 'key', 'document']) t(name), unnest(array['select', 'insert', 'update', 'delete']) r("right")
  where not has_table_privilege($1 || '.' || t.name, r.right)`

/** The oldest of the three kinds of transactions that hold back vacuum. For sessions of other roles, PostgreSQL shows only that they exist. */
const TRANSACTIONS = `
  select who, age, state from (
    select coalesce(usename, '?') || ' (pid ' || pid || coalesce(', ' || nullif(application_name, ''), '') || ')' as who,
      extract(epoch from clock_timestamp() - xact_start) * 1000 as age, coalesce(state, '?') as state
    from pg_catalog.pg_stat_activity where datname = current_database() and xact_start is not null and pid <> pg_backend_pid()
    union all
    select owner || ' (prepared as ' || gid || ')', extract(epoch from clock_timestamp() - prepared) * 1000, 'prepared'
    from pg_catalog.pg_prepared_xacts where database = current_database()
  ) as open order by age desc limit 1`

const SESSIONS = `
  select count(*)::integer, (count(*) filter (where datname = current_database() and state is null and pid <> pg_backend_pid()))::integer
  from pg_catalog.pg_stat_activity where backend_type = 'client backend'`

const ROWS = `
  select relname, n_dead_tup, n_live_tup from pg_catalog.pg_stat_all_tables where schemaname = $1 and relname in ('task', 'key') order by relname desc`

const ALTER = (setting: string): string => `alter system set ${setting} = on; select pg_reload_conf();`

export const examine = async (executor: Executor, schema: string): Promise<Fact[]> => {
  const bare = schema.slice(1, -1)
  const [settings] = await executor.query(SETTINGS, [])
  const [version, number, fsync, fullPages, commit, autovacuum, most, user, isStandby] = settings as [
    string,
    number,
    string,
    string,
    string,
    string,
    number,
    string,
    boolean,
  ]
  const missing = (await executor.query(MISSING_RIGHTS, [schema])).map(([right]) => right as string)
  const [oldest] = await executor.query(TRANSACTIONS, [])
  const [sessions] = await executor.query(SESSIONS, [])
  const tables = await executor.query(ROWS, [bare])
  return [
    {
      check: 'version',
      product: 'PostgreSQL',
      version,
      least: String(LEAST_VERSION),
      isEnough: number >= LEAST_VERSION * 10_000,
    },
    { check: 'schema', found: await schemaVersion(executor, schema), known: SCHEMA_VERSION },
    ...durabilityOf({ fsync, fullPages, commit, user }),
    {
      check: 'permissions',
      who: `role ${user}`,
      missing: isStandby ? ['write: this server is a standby'] : missing,
      how: isStandby
        ? 'Connect to the primary.'
        : `grant usage on schema ${bare} to ${user}; grant select, insert, update, delete on all tables in schema ${bare} to ${user};`,
    },
    {
      check: 'transactions',
      oldest:
        oldest === undefined ? null : { who: oldest[0] as string, age: Number(oldest[1]), state: oldest[2] as string },
      how: 'End it (select pg_terminate_backend(pid), drop the slot, or finish the prepared transaction), and set idle_in_transaction_session_timeout.',
      hidden: sessions![1] as number,
      howToSee: 'grant pg_read_all_stats to this role',
    },
    { check: 'vacuum', setting: 'autovacuum', isOn: autovacuum === 'on', how: ALTER('autovacuum') },
    ...tables.map(([name, dead, live]) => bloatOf(bare, name as string, Number(dead), Number(live))),
    {
      check: 'connections',
      used: sessions![0] as number,
      most,
      how: 'Lower `max` of the pools, use a pooler, or raise max_connections.',
    },
  ]
}

interface DurabilitySettings {
  readonly fsync: string
  readonly fullPages: string
  readonly commit: string
  readonly user: string
}

const durabilityOf = ({ fsync, fullPages, commit, user }: DurabilitySettings): readonly Fact[] => [
  { check: 'durability', setting: 'fsync', value: fsync, wanted: 'on', how: ALTER('fsync') },
  { check: 'durability', setting: 'full_page_writes', value: fullPages, wanted: 'on', how: ALTER('full_page_writes') },
  {
    check: 'durability',
    setting: 'synchronous_commit',
    // 'local' and the remote settings are durable too.
    value: commit === 'off' ? 'off' : 'on',
    wanted: 'on',
    how: `alter role ${user} set synchronous_commit = on;`,
  },
]

const bloatOf = (schema: string, table: string, dead: number, live: number): Fact => ({
  check: 'bloat',
  what: `table ${table}`,
  dead,
  live,
  unit: 'rows',
  how: `vacuum (analyze) ${schema}.${table}; if it happens again, look for transactions that stay open.`,
})
