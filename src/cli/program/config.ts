/** The config file, and the address of the store with its source: the flag, the variable, the file, or the default. */
import { existsSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { resolve } from 'node:path'
import { pathToFileURL } from 'node:url'
import { DEFAULT_ADDRESS, HoldfastError } from '../../index.ts'
import { messageOf } from '../output/errors.ts'

export interface Setting {
  readonly value: string
  /** `--url`, `HOLDFAST_URL`, the file's name, or `default`. */
  readonly from: string
}

export interface ConfigFile {
  readonly name: string
  readonly content: Readonly<Record<string, unknown>>
}

const NAMES = ['holdfast.config.ts', 'holdfast.config.js', 'holdfast.config.json'] as const

/** The first source that names a store wins. */
export const addressOf = async ({ url }: { readonly url?: string }): Promise<Setting> => {
  if (url !== undefined) return { value: url, from: '--url' }
  const variable = process.env['HOLDFAST_URL']
  // An empty variable is one that a deployment forgot to fill in: its tasks would go to a file that no worker reads.
  if (variable === '') throw refused('HOLDFAST_URL is set, but empty: name a store in it, or unset it')
  if (variable !== undefined) return { value: variable, from: 'HOLDFAST_URL' }
  const file = await configFile()
  const value = file?.content['url']
  return file === null || value === undefined
    ? { value: DEFAULT_ADDRESS, from: 'default' }
    : { value: value as string, from: file.name }
}

let reading: Promise<ConfigFile | null> | null = null

/** Only in the current folder: a file elsewhere must not decide where tasks go. */
export const configFile = (): Promise<ConfigFile | null> => (reading ??= read())

const read = async (): Promise<ConfigFile | null> => {
  const [name, ...others] = NAMES.filter((one) => existsSync(one))
  if (name === undefined) return null
  if (others.length > 0) throw refused(`${name} and ${others.join(' and ')} are both here: keep one of them`)
  const content = await contents(name)
  if (!isObject(content)) throw refused(`${name} must be an object, such as { "url": "sqlite:./holdfast.db" }`)
  const url = content['url']
  if (url === undefined || (typeof url === 'string' && url !== '')) return { name, content }
  throw refused(`${name}: url must be the address of a store`)
}

const contents = async (file: string): Promise<unknown> => {
  try {
    const path = resolve(file)
    if (file.endsWith('.json')) return JSON.parse(await readFile(path, 'utf8'))
    return ((await import(pathToFileURL(path).href)) as { readonly default?: unknown }).default
  } catch (error) {
    throw refused(`${file} cannot be read: ${messageOf(error)}`, error)
  }
}

export const isObject = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

export const refused = (message: string, cause?: unknown): HoldfastError =>
  new HoldfastError('INVALID_OPTION', message, { field: 'config' }, cause)
