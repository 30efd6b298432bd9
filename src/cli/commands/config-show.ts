/** `holdfast config show`: every setting, its value and its source. */

import { EXIT } from '../output/exit-codes.ts'
import { out, outJson, paint, printable } from '../output/render.ts'
import { addressOf, configFile } from '../program/config.ts'
import type { GlobalOptions } from '../program/session.ts'

export const run = async (_: readonly string[], options: GlobalOptions): Promise<number> => {
  const { value, from } = await addressOf(options)
  const url = withoutSecrets(value)
  const file = configFile()
  if (options.json) outJson({ url: { value: url, from }, file })
  else {
    out(`url: ${printable(url)} ${paint('dim', `(from ${from})`)}`)
    out(`file: ${file ?? 'none'}`)
  }
  return EXIT.ok
}

/** Hides passwords. */
const withoutSecrets = (address: string): string =>
  address
    .replace(/(:\/\/[^/?#@:]*):[^/?#@]*@/, '$1:***@')
    .replace(/([?&](?:password|secret|token)[^=&]*=)[^&]*/gi, '$1***')
