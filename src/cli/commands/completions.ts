/** `holdfast completions SHELL`: prints a script with which the shell completes holdfast commands. */
import { script } from '@bomb.sh/tab'
import { HoldfastError } from '../../index.ts'
import { EXIT } from '../output/exit-codes.ts'

const SHELLS: readonly string[] = ['bash', 'zsh', 'fish', 'powershell']

export const run = async ([shell]: readonly string[]): Promise<number> => {
  if (!SHELLS.includes(shell!))
    throw new HoldfastError('INVALID_OPTION', `SHELL '${shell}' is not one of ${SHELLS.join(', ')}`, { field: 'SHELL' })
  script(shell!, 'holdfast', 'holdfast')
  return EXIT.ok
}
