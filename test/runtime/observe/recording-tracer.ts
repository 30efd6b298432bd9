/** As much of an OpenTelemetry SDK as a test needs: spans in a list, and a context that follows promises. */
import { AsyncLocalStorage } from 'node:async_hooks'
import {
  type Attributes,
  type Context,
  type ContextManager,
  context,
  type Link,
  ROOT_CONTEXT,
  type Span,
  type SpanContext,
  SpanKind,
  type SpanOptions,
  type SpanStatus,
  type Tracer,
  trace,
} from '@opentelemetry/api'

export interface Recorded {
  readonly name: string
  readonly kind: SpanKind
  readonly attributes: Attributes
  readonly links: readonly Link[]
  readonly events: string[]
  readonly context: SpanContext
  readonly parent: string | null
  status: SpanStatus | null
  isEnded: boolean
}

class Contexts implements ContextManager {
  readonly #storage = new AsyncLocalStorage<Context>()
  active = (): Context => this.#storage.getStore() ?? ROOT_CONTEXT
  with: ContextManager['with'] = (given, work, self, ...args) =>
    this.#storage.run(given, () => work.call(self as never, ...args))
  bind = <T>(_: Context, target: T): T => target
  enable = (): this => this
  disable = (): this => this
}

const hex = (digits: number): string =>
  Array.from({ length: digits }, () => Math.floor(Math.random() * 16).toString(16)).join('')

/** Registered for this process until `stop`. */
export const recordSpans = (): { readonly spans: Recorded[]; stop(): void } => {
  const spans: Recorded[] = []
  const startSpan = (name: string, options: SpanOptions = {}, within: Context = context.active()): Span => {
    const parent = trace.getSpanContext(within)
    const record: Recorded = {
      name,
      kind: options.kind ?? SpanKind.INTERNAL,
      attributes: { ...options.attributes },
      links: options.links ?? [],
      events: [],
      context: { traceId: parent?.traceId ?? hex(32), spanId: hex(16), traceFlags: 1 },
      parent: parent?.spanId ?? null,
      status: null,
      isEnded: false,
    }
    spans.push(record)
    const span: Partial<Span> = {
      spanContext: () => record.context,
      setAttribute: (key, value) => {
        Object.assign(record.attributes, { [key]: value })
        return span as Span
      },
      addEvent: (event) => {
        record.events.push(event)
        return span as Span
      },
      recordException: () => {},
      setStatus: (status) => {
        record.status = status
        return span as Span
      },
      end: () => {
        record.isEnded = true
      },
    }
    return span as Span
  }
  const startActiveSpan = (name: string, ...rest: unknown[]): unknown => {
    const work = rest.at(-1) as (span: Span) => unknown
    const span = startSpan(name, rest.length > 1 ? (rest[0] as SpanOptions) : {})
    return context.with(trace.setSpan(context.active(), span), () => work(span))
  }
  context.setGlobalContextManager(new Contexts())
  trace.setGlobalTracerProvider({ getTracer: () => ({ startSpan, startActiveSpan }) as Tracer })
  return {
    spans,
    stop: () => {
      trace.disable()
      context.disable()
    },
  }
}
