import { UNSAFE_FILES, UNSAFE_SETTINGS } from '../../src/config/unsafe.ts'

const BEGIN =
  '<!-- Written by `npm run hardening` from the tables of `src/config/unsafe.ts`; change it there. -->\n'
const END = '<!-- The end of the table. -->\n'

/**
 * The page docs/hardening.md with the present table between its marks: what `check` warns of.
 *
 * @throws Error if the page has no marks
 */
export function hardeningPage(page: string): string {
  const [before, rest] = page.split(BEGIN, 2)
  const after = rest?.split(END, 2)[1]
  if (before === undefined || after === undefined)
    throw new Error(`docs/hardening.md has no place for the table: ${BEGIN}`)
  const settings = UNSAFE_SETTINGS.map((row) => ({ ...row, key: `\`${row.key}\`` }))
  const rows = [...settings, ...UNSAFE_FILES].map(
    ({ key, wanted, meaning }) => `| ${key} | ${wanted} | ${meaning} |\n`,
  )
  return [
    before,
    BEGIN,
    '\n| key or file | wanted | otherwise |\n| --- | --- | --- |\n',
    ...rows,
    '\n',
    END,
    after,
  ].join('')
}
