/**
 * A line chart drawn by uPlot. All charts of a page have the same time axis, and the crosshair of one is that of all. The legend is our own
 * and shows the values at the crosshair, or the latest.
 */
import { signal } from '@preact/signals'
import { useEffect, useRef } from 'preact/hooks'
import uPlot from 'uplot'
import { axisTime } from '../../text/words.ts'
import { isUtc } from '../../text/zone.ts'
import { isDark } from '../../theme.ts'
import { ticksUpTo } from './ticks.ts'

interface Line {
  readonly label: string
  /** The name of a colour in tokens.css, without the dashes. */
  readonly colour: string
  readonly filled?: boolean
  readonly dashed?: boolean
}

type Values = readonly (number | null)[]

interface ChartProps {
  readonly label: string
  readonly lines: readonly Line[]
  /** Milliseconds, and for each line one value at each; null where nothing was counted. */
  readonly times: readonly number[]
  readonly values: readonly Values[]
  readonly format: (value: number) => string
  readonly from: number
  readonly until: number
  /** Sizes of the steps between ticks; default: decimal. */
  readonly ticks?: readonly number[]
  /** Values that are counted less often than the slots: lines go on between them. */
  readonly isSparse?: boolean
}

const HEIGHT = 148
/** The crosshair of all charts: an index into the times. */
export const pointed = signal<number | null>(null)

/** A canvas does not resolve custom properties, so the colour is read from an element that has it. */
const colourOf = (element: HTMLElement, name: string): string => {
  element.style.color = `var(--${name})`
  const { color } = getComputedStyle(element)
  element.style.color = ''
  return color
}

const faded = (colour: string, part: number): string => colour.replace(/^rgb\((.*)\)$/, `rgba($1, ${part})`)

const isFew = (values: Values): boolean => values.filter((value) => value !== null && value !== undefined).length < 20

/** Round steps of a clock, in seconds. */
const TIME_STEPS = [60, 120, 300, 600, 900, 1_800, 3_600, 7_200, 14_400, 21_600, 43_200, 86_400, 172_800]
/** Room for one label of the time axis. */
const LABEL = 54

/** Ticks at round local times. */
const timeSplits = (plot: uPlot, _: number, from: number, until: number): number[] => {
  const most = Math.max(2, Math.floor(plot.bbox.width / devicePixelRatio / LABEL))
  const step = TIME_STEPS.find((one) => (until - from) / one <= most) ?? 604_800
  const offset = isUtc.value ? 0 : new Date(from * 1_000).getTimezoneOffset() * 60
  const splits: number[] = []
  for (let at = Math.ceil((from - offset) / step) * step + offset; at <= until; at += step) splits.push(at)
  return splits
}

const optionsOf = (
  element: HTMLElement,
  { lines, format, ticks, isSparse = false }: ChartProps,
  range: { readonly current: uPlot.Range.MinMax },
): uPlot.Options => {
  const text = colourOf(element, 'muted')
  const font = `11px ${getComputedStyle(element).fontFamily}`
  return {
    width: Math.max(200, element.clientWidth),
    height: HEIGHT,
    // Room for half of the last label.
    padding: [8, 24, 0, 0],
    legend: { show: false },
    cursor: {
      y: false,
      points: { size: 6 },
      drag: { x: false, y: false },
      sync: { key: 'charts', setSeries: false },
    },
    scales: {
      x: { time: true, range: () => range.current },
      y: { range: (_, __, max) => [0, Math.max(1, (max ?? 0) * 1.15)] },
    },
    axes: [
      {
        stroke: text,
        font,
        grid: { show: false },
        ticks: { show: false },
        size: 30,
        gap: 8,
        splits: timeSplits,
        values: (_, splits) => splits.map((at) => axisTime(at * 1_000, range.current[1]! - range.current[0]!)),
      },
      {
        stroke: text,
        font,
        grid: { stroke: colourOf(element, 'line'), width: 1 },
        ticks: { show: false },
        size: 58,
        splits: (_, __, ___, most) => [...ticksUpTo(most, format, ticks)],
        values: (_, splits) => splits.map(format),
      },
    ],
    series: [
      {},
      ...lines.map(({ colour, filled = false, dashed = false }) => {
        const stroke = colourOf(element, colour)
        return {
          stroke,
          width: 1.6,
          spanGaps: isSparse,
          ...(dashed && { dash: [4, 3] }),
          ...(filled && { fill: faded(stroke, 0.13) }),
          // A few points have no line between them.
          points: { show: (plot: uPlot, n: number) => isSparse && isFew([...(plot.data[n] ?? [])] as Values), size: 4 },
        }
      }),
    ],
    hooks: {
      setCursor: [
        (plot) => {
          pointed.value = plot.cursor.idx ?? null
        },
      ],
    },
  }
}

export const Chart = (props: ChartProps) => {
  const { label, lines, times, values, format, from, until } = props
  const holder = useRef<HTMLDivElement>(null)
  const plot = useRef<uPlot | null>(null)
  const range = useRef<uPlot.Range.MinMax>([0, 1])
  const dark = isDark()

  useEffect(() => {
    const element = holder.current!
    const made = new uPlot(optionsOf(element, props, range), [[], ...lines.map(() => [])], element)
    plot.current = made
    const watcher = new ResizeObserver(() =>
      made.setSize({ width: Math.max(200, element.clientWidth), height: HEIGHT }),
    )
    watcher.observe(element)
    return () => {
      watcher.disconnect()
      made.destroy()
      pointed.value = null
    }
  }, [dark, isUtc.value])

  useEffect(() => {
    range.current = [from / 1_000, until / 1_000]
    plot.current?.setData([times.map((at) => at / 1_000), ...values.map((one) => [...one])] as uPlot.AlignedData)
  }, [times, values, from, until, dark, isUtc.value])

  const index = pointed.value
  const shown = lines.map((line, i) => {
    const at = index ?? (values[i] ?? []).findLastIndex((value) => value !== null)
    return { ...line, value: values[i]?.[at] ?? null }
  })
  return (
    <figure class="chart">
      <figcaption>
        <span class="name">{label}</span>
        {shown.map(({ label: name, colour, value, dashed }) => (
          <span class={`key${dashed ? ' dashed' : ''}`} data-colour={colour} key={name}>
            {name} <b>{value === null ? '–' : format(value)}</b>
          </span>
        ))}
      </figcaption>
      <div ref={holder} class="plot" aria-hidden="true" />
    </figure>
  )
}
