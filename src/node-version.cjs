// Runs first, on any Node.js since version 12: every later module would fail on an old one with a stack trace.
const NEEDED = 26
if (Number.parseInt(process.versions.node, 10) < NEEDED) {
  process.stderr.write(
    `postern: Node.js ${NEEDED} or later is needed, and this is ${process.versions.node} (${process.execPath}). ` +
      'Get it from https://nodejs.org/en/download; in a checkout, "npm ci" brings it for "npm start" and "npm run".\n',
  )
  process.exit(2)
}
