/** A database of the benchmark's server for one system and one run, dropped after. */
import pg from 'pg'

export interface Database {
  readonly url: string
  drop(): Promise<void>
}

export const onServer = async <T>(url: string, use: (client: pg.Client) => Promise<T>): Promise<T> => {
  const client = new pg.Client({ connectionString: url })
  await client.connect()
  try {
    return await use(client)
  } finally {
    await client.end()
  }
}

/** After a checkpoint, so that none occurs during the run, where its full-page writes would count against this system. */
export const createDatabase = async (server: string, name: string, template = 'template1'): Promise<Database> => {
  await onServer(server, async (client) => {
    await client.query('checkpoint')
    await client.query(`create database "${name}" template "${template}" strategy file_copy`)
  })
  const url = new URL(server)
  url.pathname = `/${name}`
  return {
    url: url.href,
    drop: () => onServer(server, async (client) => void (await client.query(`drop database "${name}" with (force)`))),
  }
}
