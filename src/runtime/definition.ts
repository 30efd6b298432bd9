/** A task's contract: its type, what goes in and comes out, and its defaults. Importable without the handler. */
import type { StandardSchemaV1 } from '@standard-schema/spec'
import { type Code, HoldfastError } from '../core/errors.ts'
import { checkName, type SubmitOptions } from '../core/submission.ts'

export type SubmitDefaults = Omit<SubmitOptions, 'id' | 'idempotencyKey' | 'at' | 'expiresAt'>

/** `Input` is what submit takes, `Parsed` what the handler gets, `Output` what it returns and `wait` gives. */
export interface TaskDefinition<Input = unknown, Parsed = Input, Output = unknown> {
  readonly type: string
  readonly input: StandardSchemaV1<Input, Parsed> | null
  readonly output: StandardSchemaV1<unknown, Output> | null
  readonly options: SubmitDefaults
}

type InputOf<S> = S extends StandardSchemaV1<infer Input, unknown> ? Input : unknown
type ParsedOf<S> = S extends StandardSchemaV1<unknown, infer Parsed> ? Parsed : unknown

export interface DefineOptions<I, O> extends SubmitDefaults {
  /** Any Standard Schema: zod, valibot, arktype. Submit checks with it; the worker parses again. */
  readonly input?: I
  readonly output?: O
}

export const defineTask = <
  I extends StandardSchemaV1 | undefined = undefined,
  O extends StandardSchemaV1 | undefined = undefined,
>(
  type: string,
  options: DefineOptions<I, O> = {},
): TaskDefinition<InputOf<I>, ParsedOf<I>, ParsedOf<O>> => {
  const { input, output, ...defaults } = options
  return {
    type: checkName(type, 'type', 'INVALID_TASK'),
    input: (input ?? null) as TaskDefinition<InputOf<I>, ParsedOf<I>, ParsedOf<O>>['input'],
    output: (output ?? null) as TaskDefinition<InputOf<I>, ParsedOf<I>, ParsedOf<O>>['output'],
    options: defaults,
  }
}

/** Plain string types work wherever a definition does. */
export const asDefinition = (type: string | TaskDefinition): TaskDefinition =>
  typeof type === 'string' ? { type, input: null, output: null, options: {} } : type

/** A definition's defaults give way to what the call says, also where the call says it by another name. */
export const withDefaults = ({ options: defaults }: TaskDefinition, given: SubmitOptions): SubmitOptions => {
  for (const _ in defaults) {
    const { ttl, delay, maxRetries, maxAttempts, ...rest } = defaults
    return {
      ...rest,
      ...(ttl === undefined || given.expiresAt !== undefined ? null : { ttl }),
      ...(delay === undefined || given.at !== undefined ? null : { delay }),
      ...(maxRetries === undefined || given.maxAttempts !== undefined ? null : { maxRetries }),
      ...(maxAttempts === undefined || given.maxRetries !== undefined ? null : { maxAttempts }),
      ...given,
    }
  }
  return given
}

type Checked = { readonly value: unknown } | Promise<{ readonly value: unknown }>

/** The parsed value, at once where the schema allows it. Issues become one error that names each path. */
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
