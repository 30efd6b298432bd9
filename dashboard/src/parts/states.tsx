/** Loading, empty and error states. */
import type { ComponentChildren } from 'preact'
import type { ApiError } from '../api.ts'
import type { Resource } from '../resource.ts'

export const Empty = ({ title, children }: { readonly title: string; readonly children?: ComponentChildren }) => (
  <div class="empty">
    <p class="title">{title}</p>
    {children && <div class="hint">{children}</div>}
  </div>
)

export const Failure = ({ error, onRetry }: { readonly error: ApiError; readonly onRetry?: () => void }) => (
  <div class="failure" role="alert">
    <p>
      <strong>{error.message}</strong> <code>{error.code}</code>
    </p>
    {error.fix && <p>{error.fix.split('`').map((part, i) => (i % 2 === 1 ? <code key={i}>{part}</code> : part))}</p>}
    {onRetry && (
      <button type="button" class="plain small" onClick={onRetry}>
        Try again
      </button>
    )}
  </div>
)

const Loading = () => (
  <div class="loading" role="status">
    <span class="unseen">Loading</span>
    <i />
    <i />
    <i />
  </div>
)

interface LoadedProps<T> {
  readonly of: Resource<T>
  readonly children: (data: T) => ComponentChildren
}

/** Data stays on the page when a later read fails. The error is shown above it, unless the banner for the lost connection is shown anyway. */
export const Loaded = <T,>({ of: { data, error, reload }, children }: LoadedProps<T>) => (
  <>
    {error && (data === null || error.status > 0) && <Failure error={error} onRetry={reload} />}
    {data !== null ? children(data) : error === null && <Loading />}
  </>
)
