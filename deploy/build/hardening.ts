import { WARNING_RULES } from '../../src/compose/config-warnings.ts'

const BEGIN = '<!-- Written by `npm run hardening` from the rules of `postern check`; change it there. -->\n'
const END = '<!-- The end of the list. -->\n'

/**
 * The page docs/hardening.md with the present list between its marks: what `check` warns of.
 *
 * @throws Error if the page has no marks
 */
export function hardeningPage(page: string): string {
  const [before, rest] = page.split(BEGIN, 2)
  const after = rest?.split(END, 2)[1]
  if (before === undefined || after === undefined)
    throw new Error(`docs/hardening.md has no place for the list: ${BEGIN}`)
  const lines = WARNING_RULES.map(({ about }) => `- ${about}\n`)
  return [before, BEGIN, '\n', ...lines, '\n', END, after].join('')
}
