/** `holdfast config show`: every setting, its value, and who said so. */
import { addressOf, configFile } from '../config.ts'
import { EXIT } from '../exit-codes.ts'
import { out, outJson, paint, printable } from '../render.ts'
import type { GlobalOptions } from '../session.ts'

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

/** Passwords stay where they are. */
const withoutSecrets = (address: string): string =>
  address
    .replace(/(:\/\/[^/?#@:]*):[^/?#@]*@/, '$1:***@')
    .replace(/([?&](?:password|secret|token)[^=&]*=)[^&]*/gi, '$1***')
