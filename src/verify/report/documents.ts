import type { Plan, Report, Verdict } from '../verdict.ts'
import { countsOf, departureLines, firstSentence, visible } from './text.ts'

/** The document of `postern verify --json`. docs/verifying.md describes its keys: one may be added, none is renamed or removed. */
export function reportJson(report: Report): string {
  const { promises, floods, tokens, ...before } = report
  const { kept, broken, 'not testable': notTestable } = countsOf(report)
  return document({ ...before, kept, broken, notTestable, promises, floods, tokens })
}

/** The document of `postern verify --dry-run --json`. `floods` and `revocationPath` are null if there are none. */
export function planJson(plan: Plan): string {
  const { floods = null, revocationPath = null } = plan
  return document({ plan: { ...plan, floods, revocationPath } })
}

function document(value: unknown): string {
  return `${JSON.stringify(value, null, 2)}\n`
}

/**
 * A report in JUnit's XML, as Jenkins, GitLab and the actions of GitHub read it: one `testsuite`, and a `testcase` for each promise. A
 * broken promise is a `failure`, one that cannot be tested is `skipped`.
 */
export function junitXml(report: Report): string {
  const { promises, seconds, startedAt: timestamp } = report
  const { broken: failures, 'not testable': skipped } = countsOf(report)
  const totals = { tests: promises.length, failures, errors: 0, skipped, time: seconds.toFixed(3) }
  const properties = (['url', 'version', 'tokens'] as const).map((name) =>
    element('property', { name, value: report[name] }),
  )
  return suite(totals, { timestamp }, [element('properties', {}, properties), ...promises.map(testcase)])
}

/** The same for a run that could not take place: one `testcase` with an `error`. `problems` are lines for a person. */
export function junitError(problems: readonly string[]): string {
  const [message = ''] = problems
  const error = element('error', { message }, [escaped(lines(problems))])
  const attributes = { classname: CLASS, name: 'the run' }
  return suite({ tests: 1, failures: 0, errors: 1, skipped: 0, time: '0.000' }, {}, [
    element('testcase', attributes, [error]),
  ])
}

const CLASS = 'postern.verify'

type Attributes = Readonly<Record<string, string | number>>

function suite(totals: Attributes, more: Attributes, children: readonly string[]): string {
  const inner = element('testsuite', { name: 'postern verify', ...totals, ...more }, children)
  return `<?xml version="1.0" encoding="UTF-8"?>\n${element('testsuites', totals, [inner])}\n`
}

function testcase(verdict: Verdict): string {
  const { id, result, notes } = verdict
  const attributes = { classname: CLASS, name: `${id} ${firstSentence(verdict)}` }
  const skipped = element('skipped', { message: notes.join('; ') })
  if (result === 'not testable') return element('testcase', attributes, [skipped])
  const output = notes.length === 0 ? [] : [element('system-out', {}, [escaped(lines(notes))])]
  return element('testcase', attributes, result === 'broken' ? [failure(verdict), ...output] : output)
}

function failure({ sentence, clause, departures }: Verdict): string {
  const [first] = departures
  const message = first === undefined ? sentence : `${first.came}; wanted: ${first.wanted}`
  const texts = departures.map((each) => departureLines(each).join('\n'))
  const text = [lines([sentence, `(${clause})`]), ...texts].join('\n\n')
  return element('failure', { message, type: 'broken' }, [escaped(text)])
}

function lines(texts: readonly string[]): string {
  return texts.map(visible).join('\n')
}

function element(name: string, attributes: Attributes, children: readonly string[] = []): string {
  const pairs = Object.entries(attributes).map(
    ([key, value]) => ` ${key}="${escaped(visible(String(value)))}"`,
  )
  const start = `<${name}${pairs.join('')}`
  return children.length === 0 ? `${start}/>` : `${start}>${children.join('')}</${name}>`
}

const ENTITIES: Readonly<Record<string, string>> = { '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;' }

/** XML 1.0 §2.2 forbids some characters even as references; `visible` has replaced the others. */
function escaped(text: string): string {
  return text
    .replace(/[&<>"]/g, (character) => ENTITIES[character] ?? '')
    .replace(/[\ufffe\uffff]/g, '\ufffd')
}
