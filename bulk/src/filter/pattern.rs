//! Shell wildcards as Python's `fnmatch` reads them, which is what `aws s3` uses.

/// A pattern over a whole name: `*` is any text, `/` included, `?` one character, `[a-z]` one of these and `[!a-z]` one
/// of the others; a `[` that is never closed is itself. Nothing is escaped: `[*]` is a star.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pattern {
    parts: Vec<Part>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Part {
    /// Text as it stands.
    Text(String),
    /// `?`
    One,
    /// `[...]`: ranges, both ends included.
    Set { negated: bool, ranges: Vec<(char, char)> },
    /// `*`
    Any,
}

impl Pattern {
    /// Reads a pattern; every text is one.
    pub fn new(text: &str) -> Pattern {
        let mut parts = Vec::new();
        let mut literal = String::new();
        let mut rest = text.chars();
        while let Some(next) = rest.next() {
            let part = match next {
                '*' => Part::Any,
                '?' => Part::One,
                '[' => match set(rest.as_str()) {
                    Some((set, after)) => {
                        rest = after.chars();
                        set
                    }
                    None => {
                        literal.push('[');
                        continue;
                    }
                },
                other => {
                    literal.push(other);
                    continue;
                }
            };
            if !literal.is_empty() {
                parts.push(Part::Text(std::mem::take(&mut literal)));
            }
            if part != Part::Any || parts.last() != Some(&Part::Any) {
                parts.push(part);
            }
        }
        if !literal.is_empty() {
            parts.push(Part::Text(literal));
        }
        Pattern { parts }
    }

    /// Whether all of the name matches.
    pub fn matches(&self, name: &str) -> bool {
        let (mut at, mut rest) = (0, name);
        // Where the last star is, and how much of the name it and what is before it have taken.
        let mut star: Option<(usize, &str)> = None;
        loop {
            let advanced = match self.parts.get(at) {
                None if rest.is_empty() => return true,
                None => None,
                Some(Part::Any) => {
                    if at + 1 == self.parts.len() {
                        return true;
                    }
                    star = Some((at, rest));
                    Some(rest)
                }
                Some(part) => part.take(rest),
            };
            match (advanced, star) {
                (Some(after), _) => (at, rest) = (at + 1, after),
                (None, Some((starred, taken))) => {
                    // The star takes one more. What an earlier star took need not be reconsidered.
                    let Some(after) = skip_one(taken) else { return false };
                    star = Some((starred, after));
                    (at, rest) = (starred + 1, after);
                }
                (None, None) => return false,
            }
        }
    }

    /// What every name that matches begins with.
    pub fn fixed_prefix(&self) -> &str {
        match self.parts.first() {
            Some(Part::Text(text)) => text,
            _ => "",
        }
    }

    /// Whether it has no wildcard, so that one name alone can match.
    pub fn is_literal(&self) -> bool {
        self.parts.iter().all(|part| matches!(part, Part::Text(_)))
    }
}

impl Part {
    /// What is left of the name behind this part; `None` where it does not match.
    fn take<'a>(&self, name: &'a str) -> Option<&'a str> {
        match self {
            Part::Text(text) => name.strip_prefix(text.as_str()),
            Part::One => skip_one(name),
            Part::Set { negated, ranges } => {
                let first = name.chars().next()?;
                let within = ranges.iter().any(|(from, to)| (*from..=*to).contains(&first));
                if within == *negated { None } else { skip_one(name) }
            }
            Part::Any => Some(name),
        }
    }
}

fn skip_one(name: &str) -> Option<&str> {
    let mut rest = name.chars();
    rest.next().map(|_| rest.as_str())
}

/// The set whose `[` has been read, and what follows its `]`.
fn set(text: &str) -> Option<(Part, &str)> {
    let negated = text.starts_with('!');
    let inside = if negated { &text[1..] } else { text };
    // A `]` that comes first is one of the set.
    let from = inside.chars().next()?.len_utf8();
    let end = from + inside[from..].find(']')?;
    let (members, after) = (&inside[..end], &inside[end + 1..]);
    let members: Vec<char> = members.chars().collect();
    let mut ranges = Vec::new();
    let mut at = 0;
    while let Some(&from) = members.get(at) {
        match members.get(at + 1..at + 3) {
            Some(&['-', to]) => {
                // One whose end is before its begin has no member.
                ranges.push((from, to));
                at += 3;
            }
            _ => {
                ranges.push((from, from));
                at += 1;
            }
        }
    }
    Some((Part::Set { negated, ranges }, after))
}
