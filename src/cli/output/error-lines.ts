/** Formats a task's error for people: the chain of causes, and where in the code. */
import type { ErrorFacts } from '../../index.ts'
import { paint, printable } from './render.ts'

/** Without its causes: `TypeError: fetch failed (UND_ERR)`. */
export const headOf = ({ name, message, code }: ErrorFacts): string => {
  const first = message === '' ? name : `${name}: ${message}`
  return code === undefined || first.includes(code) ? first : `${first} (${code})`
}

/** Enough to find the line of code. `--json` has all that is kept. */
const FRAMES = 4

/** The lines below the head: detail, frames, parts and causes, each cause indented one step further. */
export const errorTree = (error: ErrorFacts, indent = ''): string[] => {
  const { detail, stack, cause, errors = [] } = error
  const inner = `${indent}  `
  return [
    ...(detail === undefined ? [] : [`${indent}${printable(detail)}`]),
    ...framesOf(stack).map((frame) => paint('dim', `${indent}${printable(frame)}`)),
    ...errors.flatMap((part) => [`${indent}part: ${printable(headOf(part))}`, ...errorTree(part, inner)]),
    ...(cause === undefined ? [] : [`${indent}caused by: ${printable(headOf(cause))}`, ...errorTree(cause, inner)]),
  ]
}

/** Frames of Node itself are left out if there are others: a failed fetch has ten of them above the line of the handler. */
const framesOf = (stack = ''): string[] => {
  const frames = stack
    .split('\n')
    .map((line) => line.trim())
    .filter((line) => line.startsWith('at '))
  const own = frames.filter((frame) => !frame.includes('node:'))
  return (own.length > 0 ? own : frames).slice(0, FRAMES)
}
