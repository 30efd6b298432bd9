/** The states that a long enough run of seeds must reach. */
import type { Profile } from './settings.ts'

/** With fewer seeds a rare state may be missing by chance. */
const ENOUGH_SEEDS = 150

const EVERYWHERE: readonly string[] = [
  'a batch of several',
  'a batch of submissions',
  'a handler submitted a task',
  'a handler went on after its lease was lost',
  'a lapsed lease was taken',
  'a limit was full',
  'a request applied after its caller gave up',
  'a recorded step was found again',
  'a signal was taken',
  'a slot fired',
  'a step or a signal was kept',
  'a trigger joined a waiting task',
  'a wait for a signal timed out',
  'aborted: lease-lost',
  'aborted: timeout',
  'an unclear submission',
  'claim by hand',
  'cut',
  'delete',
  'kill',
  'lose-reply',
  'move amend',
  'move archive',
  'move cancel',
  'move expire',
  'move fail',
  'move lose-lease',
  'move park',
  'move release',
  'move replay',
  'move request-cancel',
  'move reschedule',
  'move retry',
  'move time-out',
  'pause',
  'poison',
  'prune',
  'resume',
  'sleep-machine',
  'stall-store',
  'step-clock',
  'stop-worker',
]

const OF_PROFILE: Readonly<Record<Profile, readonly string[]>> = {
  transactional: ['a rate was used up'],
  s3: ['a short page of a list'],
  nats: ['a wrong last sequence'],
  move: [
    'a copy arrived',
    'a copy was taken back',
    'a move: aborted',
    'a move: killed',
    'a move: moved',
    'a moved task was claimed',
  ],
}

export const missingMarks = (profile: Profile, seeds: number, marks: ReadonlyMap<string, number>): readonly string[] =>
  seeds < ENOUGH_SEEDS ? [] : [...EVERYWHERE, ...OF_PROFILE[profile]].filter((mark) => !marks.has(mark))
