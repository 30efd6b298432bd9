/**
 * The threads as text, for a program whose bundler has left their files behind. Filled in by scripts/bundle.ts: in a checkout
 * the files are there.
 */
export const INLINED: Readonly<Record<'thread' | 'examiner', string | null>> = { thread: null, examiner: null }
