/** The list of keys. */
const KEYS: readonly (readonly [keys: readonly string[], what: string])[] = [
  [['g', 'o'], 'Overview'],
  [['g', 'q'], 'Queues'],
  [['g', 't'], 'Tasks'],
  [['g', 'd'], 'Dead letters'],
  [['g', 's'], 'Schedules'],
  [['g', 'w'], 'Workers'],
  [['g', 'j'], 'Jobs'],
  [['/'], 'Search tasks'],
  [['n'], 'Submit a task'],
  [['j'], 'Next row'],
  [['k'], 'Previous row'],
  [['Enter'], 'Open the row'],
  [['u'], 'Local time or UTC'],
  [['l'], 'System, light, dark'],
  [['Esc'], 'Close a dialog'],
]

export const KeysHelp = () => (
  <dl class="keys">
    {KEYS.map(([keys, what]) => (
      <div key={what}>
        <dt>
          {keys.map((key) => (
            <kbd key={key}>{key}</kbd>
          ))}
        </dt>
        <dd>{what}</dd>
      </div>
    ))}
  </dl>
)
