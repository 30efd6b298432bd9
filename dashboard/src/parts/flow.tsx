/** How tasks flow through a queue or a type, in one row of numbers. */
import type { ComponentChildren } from 'preact'
import { hrefOf } from '../route.ts'
import { duration, number, plural, rate } from '../text/words.ts'
import type { ChartTotals } from '../types.ts'

/** The range of the charts that the numbers come from. */
export const SECONDS = 300

/** Tasks that have left: completed, dead, cancelled or expired. */
export const outOf = ({ completed, died, ended }: ChartTotals): number => completed + died + ended

interface FactProps {
  readonly name: string
  readonly value: string
  readonly note?: string
}

export const Fact = ({ name, value, note }: FactProps) => (
  <li>
    <span>{name}</span>
    <b>{value}</b>
    {note && <span class="note">{note}</span>}
  </li>
)

const Latency = ({ name, of }: { readonly name: string; readonly of: ChartTotals['wait'] | undefined }) => (
  <Fact
    name={`${name}, p95`}
    value={of ? duration(of.p95) : '–'}
    {...(of && of.p50 > 0 && { note: `half under ${duration(of.p50)}` })}
  />
)

interface FlowProps {
  /** null: not read yet. undefined: nothing happened. */
  readonly totals: ChartTotals | null | undefined
  /** Further facts. */
  readonly children?: ComponentChildren
}

export const Flow = ({ totals, children }: FlowProps) => (
  <ul class="flow">
    <Fact
      name="In"
      value={totals === null ? '–' : `${rate((totals?.submitted ?? 0) / SECONDS)}/s`}
      note="last 5 minutes"
    />
    <Fact
      name="Out"
      value={totals === null ? '–' : `${rate((totals ? outOf(totals) : 0) / SECONDS)}/s`}
      note={totals === null ? '' : `${number(totals?.died ?? 0)} died, ${number(totals?.retried ?? 0)} retried`}
    />
    <Latency name="Wait" of={totals?.wait} />
    <Latency name="Run" of={totals?.run} />
    {children}
  </ul>
)

interface TableProps {
  readonly title: string
  readonly one: 'type' | 'queue'
  readonly of: Readonly<Record<string, ChartTotals>>
  /** What the rows belong to. */
  readonly filter?: Readonly<Record<string, string>>
}

/** One row for each type or queue in which something happened. */
export const FlowTable = ({ title, one, of, filter = {} }: TableProps) => {
  const rows = Object.entries(of).filter(([, { wait, run, ...counts }]) =>
    Object.values(counts).some((count) => count > 0),
  )
  return (
    <Section title={title} count={rows.length} one={one}>
      <table class="cards">
        <thead>
          <tr>
            <th scope="col">{one === 'type' ? 'Type' : 'Queue'}</th>
            <th scope="col" class="number">
              In / out
            </th>
            <th scope="col" class="number">
              Wait, p95
            </th>
            <th scope="col" class="number">
              Run, p95
            </th>
            <th scope="col" class="number">
              Retried
            </th>
            <th scope="col" class="number">
              Died
            </th>
          </tr>
        </thead>
        <tbody>
          {rows.map(([name, totals]) => (
            <tr key={name} data-name={name}>
              <th scope="row">
                <a href={hrefOf(`${one}s/${encodeURIComponent(name)}`)} data-row>
                  {name}
                </a>
              </th>
              <td class="number" data-label="In / out">
                {rate(totals.submitted / SECONDS)} / {rate(outOf(totals) / SECONDS)}
              </td>
              <td class="number" data-label="Wait, p95">
                {totals.wait ? duration(totals.wait.p95) : '–'}
              </td>
              <td class="number" data-label="Run, p95">
                {totals.run ? duration(totals.run.p95) : '–'}
              </td>
              <td class="number" data-label="Retried">
                {number(totals.retried)}
              </td>
              <td class="number" data-label="Died">
                <a
                  href={hrefOf('tasks', { status: 'dead', ...filter, [one]: name })}
                  class={totals.died === 0 ? 'none' : ''}
                >
                  {number(totals.died)}
                </a>
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </Section>
  )
}

interface SectionProps {
  readonly title: string
  readonly count: number
  readonly one: string
  readonly children: ComponentChildren
}

const Section = ({ title, count, one, children }: SectionProps) => (
  <section class="panel flush" data-panel={`${one}s`}>
    <header>
      <h2>{title}</h2>
      <div class="aside note">{plural(count, one)} in the last 5 minutes; rates are tasks per second</div>
    </header>
    <div class="body">{count === 0 ? <p class="note quiet-row">Nothing happened.</p> : children}</div>
  </section>
)
