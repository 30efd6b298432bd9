/** Throughput, latency and depth over one range of time, of the store, a queue or a type. */
import { useMemo } from 'preact/hooks'
import { RANGE_NAMES, RANGES, range, useCharts } from '../../charts-read.ts'
import { atCrosshair, duration, rate, short } from '../../text/words.ts'
import type { ChartPoint, Charts as Read } from '../../types.ts'
import { Chart, pointed } from './chart.tsx'
import { WHOLE } from './ticks.ts'

const wholeCount = (value: number): string => short(Math.round(value))

const SECOND = 1_000
const MINUTE = 60 * SECOND
/** Steps of an axis of durations, in milliseconds. */
const DURATION_TICKS = [
  1,
  2,
  5,
  10,
  20,
  50,
  100,
  200,
  500,
  ...[1, 2, 5, 10, 15, 30].map((n) => n * SECOND),
  ...[1, 2, 5, 10, 15, 30, 60, 120, 240, 480, 1_440, 2_880].map((n) => n * MINUTE),
]

interface Drawn {
  readonly times: readonly number[]
  readonly of: (read: (point: ChartPoint) => number | null) => (number | null)[]
}

/** Every slot of the range, so that no line is drawn across a time without counts. */
const drawn = ({ from, until, step, points }: Read): Drawn => {
  const byTime = new Map(points.map((point) => [Date.parse(point.at), point]))
  const times: number[] = []
  for (let at = Date.parse(from); at <= Date.parse(until); at += step) times.push(at)
  // The slot under way is not full: its rate would seem to fall.
  if (times.length > 1) times.pop()
  return { times, of: (read) => times.map((at) => (byTime.has(at) ? read(byTime.get(at)!) : null)) }
}

const RangeChoice = () => (
  <fieldset class="ranges">
    <legend class="unseen">Range of the charts</legend>
    {RANGES.map((one) => (
      <button
        key={one}
        type="button"
        class="quiet small"
        aria-pressed={range.value === one}
        onClick={() => {
          range.value = one
        }}
      >
        {RANGE_NAMES[one]}
      </button>
    ))}
  </fieldset>
)

const Lines = ({ read, hasDepth }: { readonly read: Read; readonly hasDepth: boolean }) => {
  const { times, lines, from, until } = useMemo(() => {
    const { times: at, of } = drawn(read)
    const each = (count: number): number => (count * SECOND) / read.step
    return {
      times: at,
      from: Date.parse(read.from),
      until: Date.parse(read.until),
      lines: {
        moves: [
          of(({ submitted }) => each(submitted)),
          of(({ started }) => each(started)),
          of(({ completed }) => each(completed)),
          of(({ retried, died }) => each(retried + died)),
        ],
        latency: [
          of(({ wait }) => wait?.p50 ?? null),
          of(({ wait }) => wait?.p95 ?? null),
          of(({ run }) => run?.p50 ?? null),
          of(({ run }) => run?.p95 ?? null),
        ],
        depth: [
          of(({ depth }) => depth?.ready ?? null),
          of(({ depth }) => depth?.running ?? null),
          of(({ depth }) => depth?.later ?? null),
        ],
      },
    }
  }, [read])
  const span = { times, from, until }
  const index = pointed.value
  return (
    <>
      <p class="crosshair" aria-hidden="true">
        {index !== null && times[index] !== undefined && atCrosshair(times[index], read.step)}
      </p>
      <div class="charts" data-count={hasDepth ? 3 : 2}>
        <Chart
          {...span}
          label="Tasks per second"
          lines={[
            { label: 'submitted', colour: 'view-ready', dashed: true },
            { label: 'started', colour: 'view-running' },
            { label: 'completed', colour: 'view-completed', filled: true },
            { label: 'failed', colour: 'view-dead' },
          ]}
          values={lines.moves}
          format={rate}
        />
        <Chart
          {...span}
          label="Latency"
          lines={[
            { label: 'wait p50', colour: 'view-retrying', dashed: true },
            { label: 'wait p95', colour: 'view-retrying' },
            { label: 'run p50', colour: 'view-scheduled', dashed: true },
            { label: 'run p95', colour: 'view-scheduled' },
          ]}
          values={lines.latency}
          format={duration}
          ticks={DURATION_TICKS}
          isSparse
        />
        {hasDepth && (
          <Chart
            {...span}
            label="Depth"
            lines={[
              { label: 'ready', colour: 'view-ready', filled: true },
              { label: 'running', colour: 'view-running' },
              { label: 'later', colour: 'view-scheduled', dashed: true },
            ]}
            values={lines.depth}
            format={wholeCount}
            ticks={WHOLE}
            isSparse
          />
        )}
      </div>
    </>
  )
}

/** How many tasks wait is not counted by type. */
export const Charts = ({ queue, type }: { readonly queue?: string; readonly type?: string }) => {
  const read = useCharts({ ...(queue && { queue }), ...(type && { type }) })
  return (
    <section class="past" aria-label="Charts">
      <RangeChoice />
      {read === null ? <div class="charts waiting" /> : <Lines read={read} hasDepth={type === undefined} />}
    </section>
  )
}
