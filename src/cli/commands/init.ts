/** `holdfast init`: the store is there afterwards, and it is said whether it was before. */
import { isHoldfastError } from '../../index.ts'
import { EXIT } from '../exit-codes.ts'
import { out, outJson } from '../render.ts'
import { type GlobalOptions, openClient } from '../session.ts'

export const run = async ([url]: readonly string[], options: GlobalOptions): Promise<number> => {
  const there = url === undefined ? options : { ...options, url }
  // The news is told below, once.
  const quiet = { ...there, json: true }
  let created = false
  const client = await openClient(quiet, { create: false }).catch((error: unknown) => {
    if (!isHoldfastError(error, 'STORE_NOT_FOUND')) throw error
    created = true
    return openClient(quiet, { create: true })
  })
  const { address } = client
  await client.close()
  if (options.json) outJson({ address, created })
  else out(created ? `made a new store at ${address}` : `there is a store at ${address} already`)
  return EXIT.ok
}
