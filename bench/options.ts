/** Shared by the benchmark commands: parses options and reports failures. */
import type { Field } from './systems.ts'

const FIELDS: readonly Field[] = ['sqlite', 'postgres']

/** The stores that `--store` names. */
export const fieldsOf = (store: string): readonly Field[] => {
  const fields = FIELDS.filter((field) => store === 'all' || store === field)
  if (fields.length === 0) throw new Error(`--store must be ${FIELDS.join(', ')} or all, not '${store}'`)
  return fields
}

export const wholeNumber = (text: string, option: string): number => {
  const value = Number(text)
  if (Number.isInteger(value) && value > 0) return value
  throw new Error(`${option} must be a whole number from 1, not '${text}'`)
}

/** Prints a message without a stack: these errors are for the person who typed the command. */
export const runCommand = async (main: () => Promise<void>): Promise<void> => {
  try {
    await main()
  } catch (error) {
    console.error(error instanceof Error ? error.message : error)
    process.exitCode = 1
  }
}
