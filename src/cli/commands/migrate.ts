/** `holdfast migrate`: migrates the tables to this release. Creates no store. */
import { isHoldfastError } from '../../index.ts'
import { EXIT } from '../output/exit-codes.ts'
import { out, outJson } from '../output/render.ts'
import { type GlobalOptions, openClient } from '../program/session.ts'

export const run = async ([url]: readonly string[], options: GlobalOptions): Promise<number> => {
  const there = url === undefined ? options : { ...options, url }
  let migrated = false
  const client = await openClient(there, { create: false, postgres: { migrate: false } }).catch((error: unknown) => {
    if (!isHoldfastError(error, 'SCHEMA_OLDER')) throw error
    migrated = true
    return openClient(there, { create: false })
  })
  const { address } = client
  await client.close()
  if (options.json) outJson({ address, migrated })
  else out(migrated ? `migrated ${address}` : `${address} is up to date`)
  return EXIT.ok
}
