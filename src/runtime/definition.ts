/** A task definition: its type, its input and output, and its defaults. Can be imported without the handler. */
import type { StandardSchemaV1 } from '@standard-schema/spec'
import { type Code, HoldfastError } from '../core/errors.ts'
import { mergeOptions } from '../core/merge-options.ts'
import { checkDefaults, checkName, DEFAULTABLE, type SubmitOptions } from '../core/submission.ts'

/** The submit options that a definition can have as defaults. */
export type SubmitDefaults = Omit<SubmitOptions, 'id' | 'idempotencyKey' | 'coalesce' | 'at' | 'expiresAt'>

/** `Input` is what submit takes. `Parsed` is what the handler receives. `Output` is what the handler and `wait` return. */
export interface TaskDefinition<Input = unknown, Parsed = Input, Output = unknown> {
  /** The name under which workers find the handler. */
  readonly type: string
  /** The schema of the input; null if only its type was declared. */
  readonly input: StandardSchemaV1<Input, Parsed> | null
  /** The schema of the output; null if there is none. */
  readonly output: StandardSchemaV1<unknown, Output> | null
  /** Defaults of its tasks. */
  readonly options: SubmitDefaults
}

/** A definition with any parsed type. */
export type AnyDefinition<Input, Output> = TaskDefinition<Input, never, Output> | TaskDefinition<Input, unknown, Output>

// biome-ignore lint/suspicious/noExplicitAny: every definition is one of these, whatever its types
type Definition = TaskDefinition<any, any, any>
/** A type by its name, or a definition. */
export type TypeOrDefinition = string | Definition
/** The input type of a definition; `unknown` for a plain type name. */
export type InputFor<T> = T extends TaskDefinition<infer Input, infer _, infer __> ? Input : unknown
/** The output type of a definition; `unknown` for a plain type name. */
export type OutputFor<T> = T extends TaskDefinition<infer _, infer __, infer Output> ? Output : unknown

/** An input type that rejects values JSON cannot hold, as far as the type system can tell. */
export type Storable<T> = T extends
  | bigint
  | symbol
  | Date
  | ReadonlyMap<unknown, unknown>
  | ReadonlySet<unknown>
  | ((...args: never[]) => unknown)
  ? never
  : T extends Uint8Array
    ? T
    : T extends object
      ? { [K in keyof T]: Storable<T[K]> }
      : T

/**
 * Your own open transaction. On PostgreSQL: of pg, drizzle, kysely, knex, postgres.js, prisma or TypeORM, or any object with the query function of pg. On
 * SQLite: a `DatabaseSync` of node:sqlite, a database of better-sqlite3, or the transaction of drizzle on one of these.
 */
export type Transaction =
  | SqliteTransaction
  | BetterSqliteTransaction
  | PgTransaction
  | DrizzleTransaction
  | KyselyTransaction
  | KnexTransaction
  | PostgresJsTransaction
  | PrismaTransaction

interface SqliteTransaction {
  readonly isTransaction: boolean
  exec(sql: string): void
  prepare(sql: string): object
  location(): string | null
}

interface BetterSqliteTransaction {
  readonly inTransaction: boolean
  exec(sql: string): unknown
  prepare(sql: string): object
}

interface PgTransaction {
  query(text: string, values: unknown[]): Promise<{ readonly rows: readonly object[] }>
}

interface DrizzleTransaction {
  rollback(): never
  select(...args: never[]): unknown
}

interface KyselyTransaction {
  readonly isTransaction: true
  executeQuery(...args: never[]): Promise<unknown>
}

interface KnexTransaction {
  readonly isTransaction?: boolean
  raw(...args: never[]): unknown
  savepoint(...args: never[]): unknown
}

interface PostgresJsTransaction {
  unsafe(...args: never[]): unknown
  savepoint(...args: never[]): unknown
}

interface PrismaTransaction {
  $queryRawUnsafe(text: string, ...values: never[]): PromiseLike<unknown>
}

type InputOf<S> = S extends StandardSchemaV1<infer Input, unknown> ? Input : unknown
type ParsedOf<S> = S extends StandardSchemaV1<unknown, infer Parsed> ? Parsed : unknown

/** Schemas and defaults of a definition. */
export interface DefineOptions<I, O> extends SubmitDefaults {
  /** Any Standard Schema: zod, valibot, arktype. Submit checks with it; the worker parses again. */
  readonly input?: I
  /** Checks what the handler returns, and gives `wait` its type. */
  readonly output?: O
}

const OPTIONS: ReadonlySet<string> = new Set([...DEFAULTABLE, 'input', 'output'])

/** With schemas; or `defineTask<Input, Output>('type')`, which declares types that are not checked at run time. */
export function defineTask<
  I extends StandardSchemaV1 | undefined = undefined,
  O extends StandardSchemaV1 | undefined = undefined,
>(type: string, options?: DefineOptions<I, O>): TaskDefinition<InputOf<I>, ParsedOf<I>, ParsedOf<O>>
export function defineTask<Input, Output = unknown>(
  type: string,
  options?: SubmitDefaults,
): TaskDefinition<Input, Input, Output>
export function defineTask(
  type: string,
  options: DefineOptions<StandardSchemaV1 | undefined, StandardSchemaV1 | undefined> = {},
): TaskDefinition {
  const { input, output, ...defaults } = options
  checkDefaults(defaults, OPTIONS, 'defineTask')
  return {
    type: checkName(type, 'type', 'INVALID_TASK'),
    input: asSchema(input, 'input'),
    output: asSchema(output, 'output'),
    options: defaults,
  }
}

/** A plain type name works wherever a definition does. */
export const asDefinition = (type: string | TaskDefinition): TaskDefinition =>
  typeof type === 'string' ? { type, input: null, output: null, options: {} } : checkDefinition(type)

const checkDefinition = (definition: TaskDefinition): TaskDefinition => {
  if (definition === undefined || definition === null)
    throw noType(`${definition}`, 'modules that import each other see undefined at first')
  if (typeof definition !== 'object' || definition.input === undefined || typeof definition.options !== 'object')
    throw noType(`a value of type ${typeof definition}`, "write a name, or what defineTask('name') returns")
  return definition
}

const noType = (given: string, advice: string): HoldfastError =>
  new HoldfastError('INVALID_TASK', `the type is ${given}, not a name or a definition: ${advice}`, { field: 'type' })

/** Options of the call override the definition's defaults, including a default that has the same meaning under another name. */
export const withDefaults = ({ options }: Pick<TaskDefinition, 'options'>, given: SubmitOptions): SubmitOptions =>
  mergeOptions(options, given)

/** null: there is none. Refuses what is no Standard Schema before anything is checked with it, such as a schema of an old zod. */
export const asSchema = (given: unknown, field: string): StandardSchemaV1 | null => {
  if (given === undefined || given === null) return null
  const standard = (given as Partial<StandardSchemaV1>)['~standard']
  if (typeof standard?.validate === 'function') return given as StandardSchemaV1
  throw new HoldfastError(
    'INVALID_OPTION',
    `${field} is not a Standard Schema: use zod 3.24, valibot 1 or arktype 2, or a later version`,
    { field },
  )
}

type Checked = { readonly value: unknown } | Promise<{ readonly value: unknown }>

/** Returns the parsed value, synchronously if the schema is synchronous. All issues become one error that names each path. */
export const checkSchema = (schema: StandardSchemaV1 | null, value: unknown, field: string, code: Code): Checked => {
  if (schema === null) return { value }
  const result = schema['~standard'].validate(value)
  return result instanceof Promise ? result.then((late) => taken(late, field, code)) : taken(result, field, code)
}

const taken = (result: StandardSchemaV1.Result<unknown>, field: string, code: Code): { value: unknown } => {
  if (result.issues === undefined) return { value: result.value }
  const issues = result.issues.map(
    ({ path, message }) => `${[field, ...(path ?? []).map(stepOf)].join('.')}: ${message}`,
  )
  throw new HoldfastError(code, issues.join('; '), { field, issues })
}

const stepOf = (step: PropertyKey | StandardSchemaV1.PathSegment): string =>
  String(typeof step === 'object' ? step.key : step)

/** Throws when the task has another type than the definition: its input and output would have the wrong types. */
export const mustBeOf = <Found extends { readonly id: string; readonly type: string }>(
  definition: TaskDefinition | null,
  task: Found,
): Found => {
  if (definition === null || definition.type === task.type) return task
  throw new HoldfastError('INVALID_OPTION', `task ${task.id} is a '${task.type}', not a '${definition.type}'`, {
    id: task.id,
    type: task.type,
  })
}
