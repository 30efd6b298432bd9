/** Small components shared by all pages. */
import type { ComponentChildren } from 'preact'
import { now } from '../text/time.ts'
import { moment, relative, VIEW_WORDS } from '../text/words.ts'
import type { View } from '../types.ts'
import { toast } from './toast.tsx'

export const Pill = ({ view }: { readonly view: View }) => (
  <span class="pill" data-view={view === 'failed' ? 'dead' : view}>
    {VIEW_WORDS[view] ?? view}
  </span>
)

/** '3 s ago', with the exact instant as a tooltip. */
export const Ago = ({ at }: { readonly at: string }) => (
  <time dateTime={at} title={at}>
    {relative(Date.parse(at), now.value)}
  </time>
)

export const At = ({ at }: { readonly at: string }) => (
  <time dateTime={at} title={at}>
    {moment(Date.parse(at), now.value)}
  </time>
)

/** Of a column of buttons, whose own words say what they do: the heading is for screen readers. */
export const ActionsHead = () => (
  <th scope="col">
    <span class="unseen">Actions</span>
  </th>
)

/** UUIDv7 ids differ mostly at the end. */
export const ShortId = ({ id }: { readonly id: string }) => (
  <code class="id" title={id}>
    {id.length > 12 ? `…${id.slice(-8)}` : id}
  </code>
)

/** `navigator.clipboard` is missing on plain http, except on loopback. */
const copied = async (text: string): Promise<void> => {
  if (navigator.clipboard !== undefined) return navigator.clipboard.writeText(text)
  const field = document.createElement('textarea')
  field.value = text
  field.className = 'unseen'
  document.body.append(field)
  field.select()
  const isDone = document.execCommand('copy')
  field.remove()
  if (!isDone) throw new Error('not copied')
}

export const Copy = ({ text, what }: { readonly text: string; readonly what: string }) => (
  <button
    type="button"
    class="quiet small"
    onClick={() => {
      copied(text).then(
        () => toast(`Copied ${what}`),
        () => toast('The browser does not allow this page to copy'),
      )
    }}
  >
    Copy<span class="unseen"> {what}</span>
  </button>
)

interface PanelProps {
  /** A page with a single table needs no title. */
  readonly title?: string
  readonly aside?: ComponentChildren
  readonly children: ComponentChildren
  /** Without padding, for tables and lists. */
  readonly flush?: boolean
  readonly name?: string
}

export const Panel = ({ title, aside, children, flush = false, name }: PanelProps) => (
  <section class={`panel${flush ? ' flush' : ''}`} data-panel={name}>
    {title && (
      <header>
        <h2>{title}</h2>
        {aside && <div class="aside">{aside}</div>}
      </header>
    )}
    <div class="body">{children}</div>
  </section>
)

/** A name and its value, in a list of facts. */
export const Fact = ({ name, children }: { readonly name: string; readonly children: ComponentChildren }) => (
  <div>
    <dt>{name}</dt>
    <dd>{children}</dd>
  </div>
)

interface HeadProps {
  readonly title: ComponentChildren
  readonly note?: ComponentChildren
  readonly children?: ComponentChildren
}

export const Head = ({ title, note, children }: HeadProps) => (
  <header class="head">
    <div>
      <h1 tabIndex={-1}>{title}</h1>
      {note && <p class="note">{note}</p>}
    </div>
    {children && <div class="actions">{children}</div>}
  </header>
)

interface ActionProps {
  readonly label: string
  readonly refused: string | null
  readonly onClick: () => void
  readonly tone?: 'primary' | 'danger' | 'plain'
  readonly small?: boolean
  /** For screen readers: the object of the button. */
  readonly of?: string
}

/** A button that says why it is disabled. */
export const Action = ({ label, refused, onClick, tone = 'plain', small = false, of }: ActionProps) => (
  <button
    type="button"
    class={`${tone}${small ? ' small' : ''}`}
    disabled={refused !== null}
    title={refused ?? undefined}
    aria-label={of === undefined ? undefined : `${label} ${of}`}
    onClick={onClick}
  >
    {label}
  </button>
)
