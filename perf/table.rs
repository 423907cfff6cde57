//! What a run has to say at its end: each figure with its target and whether it was met.

/// Figures in the order in which they were measured.
#[derive(Default)]
pub struct Table(Vec<Row>);

struct Row {
    figure: String,
    target: String,
    measured: String,
    met: bool,
}

impl Table {
    /// Judges a figure; `note` says what it was made from.
    pub fn at_most(&mut self, figure: impl Into<String>, target: f64, unit: &str, measured: f64, note: &str) {
        let measured_text = format!("{measured:.2} {unit}{}{note}", if note.is_empty() { "" } else { "; " });
        self.0.push(Row {
            figure: figure.into(),
            target: format!("≤ {target} {unit}"),
            measured: measured_text,
            met: measured <= target,
        });
    }

    /// Judges what is there or is not.
    pub fn holds(&mut self, figure: impl Into<String>, target: &str, measured: &str, met: bool) {
        self.0.push(Row { figure: figure.into(), target: target.to_owned(), measured: measured.to_owned(), met });
    }

    pub fn print(&self) {
        let width = |of: fn(&Row) -> &str| self.0.iter().map(|row| of(row).chars().count()).max().unwrap_or(0);
        let (figure, target) = (width(|row| &row.figure), width(|row| &row.target));
        println!("\n{:<figure$}  {:<target$}  {:<6}  measured", "figure", "target", "");
        for row in &self.0 {
            let verdict = if row.met { "met" } else { "MISSED" };
            println!("{:<figure$}  {:<target$}  {verdict:<6}  {}", row.figure, row.target, row.measured);
        }
        let missed = self.0.iter().filter(|row| !row.met).count();
        println!("{} figures, {missed} missed", self.0.len());
    }
}
