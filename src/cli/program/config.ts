/** The address of the store and its source: the flag, the variable, the file, or the default. */
import { existsSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { resolve } from 'node:path'
import { pathToFileURL } from 'node:url'
import { DEFAULT_ADDRESS, HoldfastError } from '../../index.ts'

export interface Setting {
  readonly value: string
  /** `--url`, `HOLDFAST_URL`, the file's name, or `default`. */
  readonly from: string
}

const NAMES = ['holdfast.config.ts', 'holdfast.config.js', 'holdfast.config.json'] as const

/** The first source that names a store wins. */
export const addressOf = async ({ url }: { readonly url?: string }): Promise<Setting> => {
  if (url !== undefined) return { value: url, from: '--url' }
  const variable = process.env['HOLDFAST_URL']
  if (variable) return { value: variable, from: 'HOLDFAST_URL' }
  const file = configFile()
  const value = file === null ? undefined : await urlIn(file)
  return file === null || value === undefined ? { value: DEFAULT_ADDRESS, from: 'default' } : { value, from: file }
}

/** Only in the current folder: a file elsewhere must not decide where tasks go. */
export const configFile = (): string | null => {
  const [found = null, ...others] = NAMES.filter((name) => existsSync(name))
  if (others.length > 0) throw refused(`${found} and ${others.join(' and ')} are both here: keep one of them`)
  return found
}

const urlIn = async (file: string): Promise<string | undefined> => {
  const config = await contents(file)
  if (typeof config !== 'object' || config === null || Array.isArray(config))
    throw refused(`${file} must be an object, such as { "url": "sqlite:./holdfast.db" }`)
  for (const name of Object.keys(config)) if (name !== 'url') throw refused(`${file}: '${name}' is not a setting`)
  const { url } = config as { readonly url?: unknown }
  if (url === undefined || (typeof url === 'string' && url !== '')) return url
  throw refused(`${file}: url must be the address of a store`)
}

const contents = async (file: string): Promise<unknown> => {
  try {
    const path = resolve(file)
    if (file.endsWith('.json')) return JSON.parse(await readFile(path, 'utf8'))
    return ((await import(pathToFileURL(path).href)) as { readonly default?: unknown }).default
  } catch (error) {
    throw refused(`${file} cannot be read: ${error instanceof Error ? error.message : String(error)}`, error)
  }
}

const refused = (message: string, cause?: unknown): HoldfastError =>
  new HoldfastError('INVALID_OPTION', message, { field: 'config' }, cause)
