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
    {error.fix && <p>{error.fix}</p>}
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

/** Data stays on the page when a later read fails; the error is shown above it. */
export const Loaded = <T,>({ of: { data, error, reload }, children }: LoadedProps<T>) => (
  <>
    {error && <Failure error={error} onRetry={reload} />}
    {data !== null ? children(data) : error === null && <Loading />}
  </>
)
