/** The small things that every page is made of. */
import type { ComponentChildren } from 'preact'
import { now } from '../time.ts'
import type { View } from '../types.ts'
import { moment, relative, VIEW_WORDS } from '../words.ts'
import { toast } from './toast.tsx'

export const Pill = ({ view }: { readonly view: View }) => (
  <span class="pill" data-view={view === 'failed' ? 'dead' : view}>
    {VIEW_WORDS[view] ?? view}
  </span>
)

/** '3 s ago', with the exact instant for who points at it. */
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

/** The end of a UUIDv7 is what tells two apart. */
export const ShortId = ({ id }: { readonly id: string }) => (
  <code class="id" title={id}>
    {id.length > 12 ? `…${id.slice(-8)}` : id}
  </code>
)

export const Copy = ({ text, what }: { readonly text: string; readonly what: string }) => (
  <button
    type="button"
    class="quiet small"
    onClick={() => {
      navigator.clipboard.writeText(text).then(
        () => toast(`Copied ${what}`),
        () => toast('The browser does not let this page copy'),
      )
    }}
  >
    Copy<span class="unseen"> {what}</span>
  </button>
)

interface PanelProps {
  /** A page that is one table needs none. */
  readonly title?: string
  readonly aside?: ComponentChildren
  readonly children: ComponentChildren
  /** Tables and lists go to the edge. */
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
  /** For who hears only the button: which one of many. */
  readonly of?: string
}

/** A button that says why it cannot be pressed. */
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
