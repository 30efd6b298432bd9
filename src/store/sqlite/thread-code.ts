/** Finds the code of a thread: its file or, if a bundler has left that out, its text. */
import { HoldfastError } from '../../core/errors.ts'
import { KEEP_EXTERNAL, threadFile } from '../threads/thread-file.ts'

export const codeOf = async (thread: 'thread' | 'examiner', path: string): Promise<URL | string> => {
  const code = threadFile(import.meta.url, thread) ?? (await import('./inlined-threads.ts')).INLINED[thread]
  if (code === null) throw new HoldfastError('STORE_UNAVAILABLE', `sqlite:${path}: ${KEEP_EXTERNAL}`)
  return code
}
