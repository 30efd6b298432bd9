/** A JSON value, formatted and coloured. Every piece is a text node, so nothing can become markup. */
import type { ComponentChildren } from 'preact'

/** Browsers are slow beyond this length. Copy has the whole text. */
const MOST = 60_000

const PIECES = /"(?:[^"\\]|\\.)*"(\s*:)?|-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?|\b(?:true|false|null)\b/g

const coloured = (text: string): ComponentChildren[] => {
  const out: ComponentChildren[] = []
  let from = 0
  for (const match of text.matchAll(PIECES)) {
    const [piece, colon] = match
    if (match.index > from) out.push(text.slice(from, match.index))
    const kind = piece.startsWith('"')
      ? colon === undefined
        ? 'text'
        : 'key'
      : /^[-\d]/.test(piece)
        ? 'number'
        : 'word'
    out.push(<span class={`json-${kind}`}>{piece}</span>)
    from = match.index + piece.length
  }
  out.push(text.slice(from))
  return out
}

export const Json = ({ value }: { readonly value: unknown }) => {
  const text = JSON.stringify(value, null, 2) ?? 'undefined'
  return (
    <>
      <pre class="json">{coloured(text.slice(0, MOST))}</pre>
      {text.length > MOST && (
        <p class="note">Truncated: the value has {text.length.toLocaleString('en')} characters.</p>
      )}
    </>
  )
}
