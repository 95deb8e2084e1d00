import { base64Forms, createFinder, type Span } from './encodings.ts'

/** A secret, or one of its base64 forms, as masking looks for it. */
export interface Sought {
  readonly text: string
  /** Its beginning that gives too much away. */
  readonly stem: string
  /** Where a text shows it or as much of it as follows the stem, in any usual encoding. */
  find(within: string): readonly Span[]
}

/** The beginning of a shorter secret may be a word (characters). */
const SHORTEST_WITH_STEM = 12

/** The half of a longer secret costs more to find, which a server could use to hold up a run (characters). */
const LONGEST_STEM = 64

/** @param allowed a secret whose half is in this text gives away only longer beginnings */
export function createSought(secret: string, allowed: string): readonly Sought[] {
  const stem = stemOf(secret, allowed)
  const stems = base64Forms(stem)
  const forms = base64Forms(secret).map((text, i) => soughtOf(text, stems[i] ?? text))
  return [soughtOf(secret, stem), ...forms]
}

function stemOf(secret: string, allowed: string): string {
  if (secret.length < SHORTEST_WITH_STEM) return secret
  const characters = [...secret]
  let length = Math.min(Math.ceil(characters.length / 2), LONGEST_STEM)
  const stem = (): string => characters.slice(0, length).join('')
  while (allowed.includes(stem())) length += 1
  return stem()
}

/** The finder is made when a text shows the stem, because most secrets are shown by no text. */
function soughtOf(text: string, stem: string): Sought {
  let finder: Sought['find'] | undefined
  return {
    text,
    stem,
    find(within) {
      finder ??= createFinder(text, stem)
      return finder(within)
    },
  }
}

/** A text with one `mark` in place of each group of spans that overlap or touch. */
export function withoutSpans(text: string, spans: readonly Span[], mark: string): string {
  let result = ''
  let done = 0
  for (const { start, end } of [...spans].sort((a, b) => a.start - b.start)) {
    if (end <= done) continue
    if (start > done || result === '') result += text.slice(done, start) + mark
    done = end
  }
  return result + text.slice(done)
}
