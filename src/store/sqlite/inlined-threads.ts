/**
 * The source of the threads as text, for a program whose bundler has left out their files. scripts/bundle.ts fills it in; a
 * checkout has the files.
 */
export const INLINED: Readonly<Record<'thread' | 'examiner', string | null>> = { thread: null, examiner: null }
