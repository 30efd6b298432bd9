/** Tracing with OpenTelemetry. Loaded only if an SDK has registered itself. */
import type { Link, Span } from '@opentelemetry/api'
import { isReschedule } from '../../core/failure.ts'
import { Task } from '../../core/observe/task-view.ts'
import { isParked } from '../../core/steps/step-errors.ts'
import type { SubmitOptions } from '../../core/submission.ts'
import type { Handler } from '../handler.ts'
import type { Tagging, Traced, Tracing } from '../telemetry/tracing.ts'
import { TRACE_TAG } from './tracing.ts'

/** The most tags that a task may have. A task with that many gets no link, rather than being refused. */
const MOST_TAGS = 20

type Api = typeof import('@opentelemetry/api')

/** The package is passed in: an import here would break the build of an application that has not installed it. */
export const openTelemetry = ({ context, trace, SpanKind, SpanStatusCode }: Api): Tracing => {
  const ERROR = SpanStatusCode.ERROR
  const tracer = trace.getTracer('holdfast')

  const submit = <T>({ type, queue }: Traced, work: (tagged: Tagging) => Promise<T>): Promise<T> => {
    const attributes = attributesOf('submit', type, queue)
    return tracer.startActiveSpan(`submit ${type}`, { kind: SpanKind.PRODUCER, attributes }, async (span) => {
      try {
        const submitted = await work((options) =>
          trace.isSpanContextValid(span.spanContext()) ? withTrace(options, span) : options,
        )
        if (submitted instanceof Task) span.setAttribute('messaging.message.id', submitted.id)
        return submitted
      } catch (error) {
        failed(span, error, ERROR)
        throw error
      } finally {
        span.end()
      }
    })
  }

  const handler =
    (type: string, handle: Handler): Handler =>
    (input, ctx) => {
      const { task } = ctx
      const attributes = {
        ...attributesOf('process', type, task.queue),
        'messaging.message.id': task.id,
        'holdfast.attempt': ctx.attempt,
        'holdfast.worker': ctx.workerId,
      }
      const span = tracer.startSpan(`run ${type}`, { kind: SpanKind.CONSUMER, attributes, links: linksOf(task.tags) })
      return context.with(trace.setSpan(context.active(), span), () => recorded(span, ERROR, () => handle(input, ctx)))
    }

  return { submit, handler }
}

const attributesOf = (operation: string, type: string, queue: string): Record<string, string> => ({
  'messaging.system': 'holdfast',
  'messaging.operation.name': operation,
  'messaging.destination.name': queue,
  'holdfast.task.type': type,
})

const recorded = async (span: Span, errorCode: number, run: () => unknown): Promise<unknown> => {
  try {
    const returned = await run()
    if (isReschedule(returned)) span.addEvent('rescheduled')
    return returned
  } catch (error) {
    // A durable sleep is not a failure.
    if (isParked(error)) span.addEvent('parked')
    else if (isReschedule(error)) span.addEvent('rescheduled')
    else failed(span, error, errorCode)
    throw error
  } finally {
    span.end()
  }
}

const failed = (span: Span, error: unknown, code: number): void => {
  const message = error instanceof Error ? error.message : String(error)
  span.recordException(error instanceof Error ? error : message)
  span.setStatus({ code, message })
}

const withTrace = (options: SubmitOptions, span: Span): SubmitOptions => {
  const { traceId, spanId, traceFlags } = span.spanContext()
  const { tags = {} } = options
  const isFull = Object.keys(tags).length >= MOST_TAGS
  if (TRACE_TAG in tags || isFull) return options
  const traceparent = `00-${traceId}-${spanId}-${traceFlags.toString(16).padStart(2, '0')}`
  return { ...options, tags: { ...tags, [TRACE_TAG]: traceparent } }
}

const linksOf = (tags: Task['tags']): Link[] => {
  const [, traceId, spanId, flags] =
    /^00-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})$/.exec(tags[TRACE_TAG] ?? '') ?? []
  if (traceId === undefined || spanId === undefined) return []
  return [{ context: { traceId, spanId, traceFlags: Number.parseInt(flags!, 16), isRemote: true } }]
}
