import { UNSAFE_FILES, UNSAFE_SETTINGS } from '../../src/config/unsafe.ts'
import { withTable } from './marked-table.ts'

/** The page docs/hardening.md with the present table: what `check` warns of. */
export function hardeningPage(page: string): string {
  const settings = UNSAFE_SETTINGS.map((row) => ({ ...row, key: `\`${row.key}\`` }))
  return withTable(page, {
    begin:
      '<!-- Written by `npm run hardening` from the tables of `src/config/unsafe.ts`; change it there. -->\n',
    head: ['key or file', 'wanted', 'otherwise'],
    rows: [...settings, ...UNSAFE_FILES].map(({ key, wanted, meaning }) => [key, wanted, meaning]),
  })
}
