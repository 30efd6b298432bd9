/** A JSON value, formatted, coloured, and folded where it is deep or long. Every piece is a text node, so nothing can become markup. */
import type { ComponentChildren } from 'preact'
import { useState } from 'preact/hooks'
import { escaped } from '../text/visible.ts'
import { number } from '../text/words.ts'

/** Deeper values are folded at first, unless the whole is short. */
const OPEN_DEPTH = 2
const SHORT = 1_500
/** How many members of a value are shown at first. A button shows the rest. */
const MOST = 100
/** Browsers are slow with longer strings. Copy has the whole text. */
const LONGEST = 20_000

interface NodeProps {
  /** The name of the member, or absent in an array. */
  readonly name?: string | undefined
  readonly value: unknown
  readonly depth: number
  readonly isLast: boolean
  readonly isShort: boolean
}

const scalar = (value: unknown): ComponentChildren => {
  const text = escaped(JSON.stringify(value) ?? 'null')
  const kind = typeof value === 'string' ? 'text' : typeof value === 'number' ? 'number' : 'word'
  const more = text.length - LONGEST
  return (
    <>
      <span class={`json-${kind}`}>{more > 0 ? text.slice(0, LONGEST) : text}</span>
      {more > 0 && <span class="note"> … {number(more)} more characters</span>}
    </>
  )
}

const isParent = (value: unknown): value is object =>
  typeof value === 'object' && value !== null && Object.keys(value).length > 0

const Node = ({ name, value, depth, isLast, isShort }: NodeProps) => {
  const [isOpen, open] = useState(isShort || depth < OPEN_DEPTH)
  const [shown, show] = useState(MOST)
  const indent = '  '.repeat(depth)
  const key = name !== undefined && (
    <>
      <span class="json-key">{escaped(JSON.stringify(name))}</span>
      {': '}
    </>
  )
  const end = `${isLast ? '' : ','}\n`
  if (!isParent(value))
    return (
      <>
        {indent}
        {key}
        {scalar(value)}
        {end}
      </>
    )
  const isArray = Array.isArray(value)
  const members = Object.entries(value)
  const [before, after] = isArray ? '[]' : '{}'
  const count = `${number(members.length)} ${isArray ? (members.length === 1 ? 'item' : 'items') : members.length === 1 ? 'field' : 'fields'}`
  return (
    <>
      {indent}
      {key}
      <button
        type="button"
        class="fold"
        aria-expanded={isOpen}
        aria-label={`${isOpen ? 'Fold' : 'Unfold'} ${name ?? 'the value'}, ${count}`}
        onClick={() => open(!isOpen)}
      />
      {before}
      {isOpen ? (
        <>
          {'\n'}
          {members.slice(0, shown).map(([of, member], i) => (
            <Node
              key={of}
              name={isArray ? undefined : of}
              value={member}
              depth={depth + 1}
              isLast={i === members.length - 1}
              isShort={isShort}
            />
          ))}
          {members.length > shown && (
            <>
              {`${indent}  `}
              <button type="button" class="quiet small" onClick={() => show(shown + 10 * MOST)}>
                {number(members.length - shown)} more
              </button>
              {'\n'}
            </>
          )}
          {indent}
        </>
      ) : (
        <span class="note"> {count} </span>
      )}
      {after}
      {end}
    </>
  )
}

export const Json = ({ value }: { readonly value: unknown }) => (
  <div class="json">
    <Node value={value} depth={0} isLast isShort={(JSON.stringify(value) ?? '').length <= SHORT} />
  </div>
)
