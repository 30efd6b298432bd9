/** Files with tokens: one token, or a list of named ones. */
import { readFileSync, statSync } from 'node:fs'
import { RIGHTS, type Right, ROLES, type Token } from '../../../http/index.ts'
import { HoldfastError } from '../../../index.ts'

const FIELDS: ReadonlySet<string> = new Set(['name', 'token', 'role', 'rights', 'queues'])

/** The first line. */
export const tokenIn = (file: string): string => textOf('--token-file', file).split('\n', 1)[0]!.trim()

/** A JSON list of `{ name, token, role or rights, queues }`. */
export const tokensIn = (file: string): readonly Token[] => {
  const list = parsed(file)
  if (!Array.isArray(list)) throw refused('--tokens', `${file} must contain a list of tokens`)
  const tokens = list.map((one: unknown, i) => tokenOf(one, `${file}: token ${i + 1}`))
  const names = tokens.map(({ name }) => name!)
  const twice = names.find((name, i) => names.indexOf(name) < i)
  if (twice !== undefined) throw refused('--tokens', `${file}: two tokens have the name '${twice}'`)
  return tokens
}

const parsed = (file: string): unknown => {
  const text = textOf('--tokens', file)
  try {
    return JSON.parse(text)
  } catch {
    // The message of the parser would quote the file.
    throw refused('--tokens', `${file} is not JSON`)
  }
}

const tokenOf = (given: unknown, where: string): Token => {
  if (typeof given !== 'object' || given === null) throw refused('--tokens', `${where} must be an object`)
  const unknown = Object.keys(given).find((field) => !FIELDS.has(field))
  if (unknown !== undefined) throw refused('--tokens', `${where} has an unknown field '${unknown}'`)
  const { name, token, queues } = given as Record<string, unknown>
  if (typeof name !== 'string') throw refused('--tokens', `${where} needs a name: histories show it`)
  if (typeof token !== 'string') throw refused('--tokens', `${where} needs a token`)
  if (queues !== undefined && !isTexts(queues)) throw refused('--tokens', `${where}: queues must be a list of names`)
  return { name, token, rights: rightsOf(given, where), ...(queues !== undefined && { queues }) }
}

const rightsOf = ({ role, rights }: { role?: unknown; rights?: unknown }, where: string): readonly Right[] => {
  if ((role === undefined) === (rights === undefined))
    throw refused('--tokens', `${where} needs a role (${Object.keys(ROLES).join(', ')}) or a list of rights`)
  if (typeof role === 'string' && Object.hasOwn(ROLES, role)) return ROLES[role as keyof typeof ROLES]
  if (isTexts(rights) && rights.every((right) => (RIGHTS as readonly string[]).includes(right)))
    return rights as readonly Right[]
  if (role !== undefined) throw refused('--tokens', `${where}: role must be one of ${Object.keys(ROLES).join(', ')}`)
  throw refused('--tokens', `${where}: rights must be some of ${RIGHTS.join(', ')}`)
}

const isTexts = (value: unknown): value is readonly string[] =>
  Array.isArray(value) && value.every((one) => typeof one === 'string')

const textOf = (option: string, file: string): string => {
  try {
    if (process.platform !== 'win32' && (statSync(file).mode & 0o077) !== 0)
      throw refused(option, `${file} is readable by other users: chmod 600 ${file}`)
    return readFileSync(file, 'utf8')
  } catch (error) {
    if (error instanceof HoldfastError) throw error
    throw refused(option, `cannot be read: ${(error as Error).message}`)
  }
}

const refused = (field: string, why: string): HoldfastError =>
  new HoldfastError('INVALID_OPTION', `${field} ${why}`, { field })
