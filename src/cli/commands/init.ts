/** `holdfast init`: creates the store if it does not exist, and says which was the case. */
import { isHoldfastError } from '../../index.ts'
import { EXIT } from '../output/exit-codes.ts'
import { out, outJson } from '../output/render.ts'
import { type GlobalOptions, openClient } from '../program/session.ts'

interface Options extends GlobalOptions {
  readonly acceptRestore?: boolean
}

export const run = async ([url]: readonly string[], options: Options): Promise<number> => {
  const there = url === undefined ? options : { ...options, url }
  // The result is printed below, once.
  const quiet = { ...there, json: true }
  let created = false
  const client = await openClient(quiet, { create: false }).catch((error: unknown) => {
    if (!isHoldfastError(error, 'STORE_NOT_FOUND')) throw error
    created = true
    return openClient(quiet, { create: true })
  })
  const { address } = client
  const accepted = options.acceptRestore === true && !created ? await client.acceptRestore() : null
  await client.close()
  if (options.json) outJson({ address, created, ...(accepted === null ? null : { accepted }) })
  else if (accepted !== null)
    out(
      `accepted the restored store at ${address}: the fences of ${accepted} tasks that may run again grew by a million`,
    )
  else out(created ? `created a store at ${address}` : `a store already exists at ${address}`)
  return EXIT.ok
}
