import { sentence } from '../../src/overview/alarm.ts'
import { TROUBLES } from '../../src/record/troubles.ts'
import { withTable } from './marked-table.ts'

/** The page docs/operating.md with the present table: the troubles, where each is told, and what to do. */
export function operatingPage(page: string): string {
  return withTable(page, {
    begin: '<!-- Written by `npm run hardening` from `src/record/troubles.ts`; change it there. -->\n',
    head: ['trouble', 'first line of the log', 'alarm and alert', 'do'],
    rows: Object.entries(TROUBLES).map(([name, { trouble, line, remedy }]) => [
      trouble,
      `\`${line}\``,
      `[${name}](alerts.md#${name.toLowerCase()})`,
      sentence(remedy),
    ]),
  })
}
