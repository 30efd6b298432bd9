/** `holdfast completions SHELL`: a script that makes the shell ask us what could come next. */
import { script } from '@bomb.sh/tab'
import { HoldfastError } from '../../index.ts'
import { EXIT } from '../exit-codes.ts'

const SHELLS: readonly string[] = ['bash', 'zsh', 'fish', 'powershell']

export const run = async ([shell]: readonly string[]): Promise<number> => {
  if (!SHELLS.includes(shell!))
    throw new HoldfastError('INVALID_OPTION', `SHELL '${shell}' is not one of ${SHELLS.join(', ')}`, { field: 'SHELL' })
  script(shell!, 'holdfast', 'holdfast')
  return EXIT.ok
}
