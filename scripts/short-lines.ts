/**
 * Breaks the lines of minified code before each statement and each member of a class. Node shows the line of an uncaught error above its message, and
 * above a line of 170,000 characters nobody finds the message.
 */
import { parse, Visitor } from 'rolldown/utils'

/** Returns the code with short lines, and the mappings of its source map with the same breaks. */
export const withShortLines = async (
  fileName: string,
  code: string,
  mappings: string,
): Promise<{ readonly code: string; readonly mappings: string }> => {
  const starts: number[] = []
  const begin = ({ body }: { readonly body: readonly { readonly start: number }[] }): void => {
    for (const { start } of body) if (start > 0 && code[start - 1] !== '\n') starts.push(start)
  }
  const { program } = await parse(fileName, code)
  new Visitor({ Program: begin, BlockStatement: begin, ClassBody: begin, StaticBlock: begin }).visit(program)
  starts.sort((a, b) => a - b)
  const parts = [0, ...starts].map((start, n) => code.slice(start, starts[n]))
  return { code: parts.join('\n'), mappings: breakMappings(mappings, code, starts) }
}

const DIGITS = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/'

/** Only the first number of a segment, its column relative to the one before it in the line, depends on where lines are broken. */
const breakMappings = (mappings: string, code: string, starts: readonly number[]): string => {
  const lines: string[] = []
  let lineStart = 0
  let next = 0
  for (const line of mappings.split(';')) {
    const lineEnd = code.indexOf('\n', lineStart)
    let place = lineStart
    let origin = lineStart
    let segments: string[] = []
    for (const segment of line === '' ? [] : line.split(',')) {
      const { value, rest } = firstOf(segment)
      const from = place
      place += value
      let isFirst = segments.length === 0
      for (; next < starts.length && starts[next]! <= place; next++) {
        lines.push(segments.join(','))
        segments = []
        origin = starts[next]!
        isFirst = true
      }
      segments.push(encoded(place - (isFirst ? origin : from)) + rest)
    }
    for (; next < starts.length && (lineEnd === -1 || starts[next]! < lineEnd); next++) {
      lines.push(segments.join(','))
      segments = []
    }
    lines.push(segments.join(','))
    lineStart = lineEnd === -1 ? code.length : lineEnd + 1
  }
  return lines.join(';')
}

const firstOf = (segment: string): { readonly value: number; readonly rest: string } => {
  let value = 0
  let length = 0
  for (let digit = 32; digit & 32; length++) {
    digit = DIGITS.indexOf(segment[length]!)
    value |= (digit & 31) << (5 * length)
  }
  return { value: value & 1 ? -(value >>> 1) : value >>> 1, rest: segment.slice(length) }
}

const encoded = (value: number): string => {
  let text = ''
  let rest = value < 0 ? (-value << 1) | 1 : value << 1
  do {
    text += DIGITS[(rest & 31) | (rest > 31 ? 32 : 0)]
    rest >>>= 5
  } while (rest > 0)
  return text
}
