import { hash } from 'node:crypto'
import { readFileSync, writeFileSync } from 'node:fs'
import { type Debugger, Session } from 'node:inspector'
import { join } from 'node:path'
import process from 'node:process'
import { constants, Script } from 'node:vm'
import type { CalledFunctions } from './compiled-code.ts'

// `node compile-functions.ts FOLDER FILE` compiles the functions in FILE (`CalledFunctions`) of the scripts in a folder and writes
// V8's code of each script beside it, as `.cache`: the digest of the source, the digest of the code, and the code.

const [folder = '', file = ''] = process.argv.slice(2)
const called = JSON.parse(readFileSync(file, 'utf8')) as CalledFunctions

const session = new Session()
session.connect()
const ids = new Map<string, string>()
session.on('Debugger.scriptParsed', ({ params }) => ids.set(params.url, params.scriptId))
session.post('Debugger.enable')

for (const [name, starts] of Object.entries(called)) {
  // The file is ASCII.
  const text = readFileSync(join(folder, name), 'latin1')
  const script = new Script(text, {
    filename: name,
    importModuleDynamically: constants.USE_MAIN_CONTEXT_DEFAULT_LOADER,
  })
  // The script is only the text of a function. Evaluating it runs none of its code, and tells the debugger of the script.
  script.runInThisContext()
  const scriptId = ids.get(name)
  if (scriptId === undefined) throw new Error(`the debugger does not know ${name}`)
  const lines = [0, ...[...text.matchAll(/\n/g)].map(({ index }) => index + 1)]
  const location = (offset: number): Debugger.Location => {
    const lineNumber = lines.findLastIndex((start) => start <= offset)
    return { scriptId, lineNumber, columnNumber: offset - (lines[lineNumber] ?? 0) }
  }
  // To tell where a function can be stopped, V8 compiles it.
  for (const start of starts) {
    const range = { start: location(start), end: location(start + 1), restrictToFunction: true }
    session.post('Debugger.getPossibleBreakpoints', range, (error) => {
      if (error !== null) throw error
    })
  }
  const code = script.createCachedData()
  const digests = [text, code].map((each) => hash('sha256', each, 'buffer'))
  writeFileSync(join(folder, `${name}.cache`), Buffer.concat([...digests, code]))
}
